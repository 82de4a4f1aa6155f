//! The models of how bytes move, to run one case on several of them.

use super::flits::FlitWires;
use crate::engine::ids::Ids;
use crate::engine::sim::Simulation;
use crate::engine::traffic;
use crate::engine::{Fabric, Fidelity, Flow, Options, Passage, Stall, Submitted, Timing, simulate_all_on};
use crate::ir::Program;

/// A model of the wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// The plain flit-by-flit engine of `flits`.
    Plain,
    /// One that ships.
    Shipped(Fidelity),
}

impl Model {
    /// The models that give what moving every flit by the rules gives; laws hold for each.
    pub const EXACT: [Model; 2] = [Model::Plain, Model::Shipped(Fidelity::Flit)];
    /// The exact ones and one that is near.
    pub const ALL: [Model; 3] = [Model::MESSAGE, Model::Plain, Model::Shipped(Fidelity::Flit)];
    pub const MESSAGE: Model = Model::Shipped(Fidelity::Message);

    pub fn traffic(self, fabric: &dyn Fabric, flows: &[Flow]) -> Vec<Passage> {
        match self {
            Model::Plain => traffic::run(fabric, flows, FlitWires::new(fabric)),
            Model::Shipped(fidelity) => traffic::traffic_on(fabric, flows, fidelity),
        }
    }

    /// Runs a program that must come to its end; options say all but the fidelity.
    pub fn timing(self, fabric: &dyn Fabric, program: &Program, options: &Options) -> Timing {
        let timings = self.timings(fabric, &[Submitted::alone(program, options)]);
        timings.unwrap_or_else(|(_, stall)| panic!("{stall}")).remove(0)
    }

    /// Runs launches that share the machine.
    pub fn timings(
        self,
        fabric: &dyn Fabric,
        launches: &[Submitted],
    ) -> Result<Vec<Timing>, (usize, Box<Stall>)> {
        match self {
            Model::Plain => {
                let ids = Ids::new(launches.iter().flat_map(|launch| &launch.program.pes));
                Simulation::new(fabric, launches, ids, FlitWires::new(fabric)).run()
            }
            Model::Shipped(fidelity) => simulate_all_on(fabric, launches, fidelity),
        }
    }
}
