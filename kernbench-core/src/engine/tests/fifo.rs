//! An example of what first-come-first-served networks do: without one transfer another takes longer.

use super::fake::Line;
use super::model::Model;
use crate::engine::{Flow, Issuer};
use crate::ir::{PeId, Transfer};
use crate::units::Ps;

fn message(from: u32, to: u32, flits: u32, start_ps: Ps) -> Flow {
    let transfer =
        Transfer { addr: 0, home: PeId(to), run_bytes: 256 * flits, runs: 1, ..Transfer::default() };
    Flow { issuer: Issuer::Message(PeId(from)), transfer, start_ps }
}

/// Routers decode for 2 ns, an edge takes a flit of 1 ns, a wire 10 ps.
///
/// Flow 1 keeps router 3 busy until 3010, so that flow 0 gets to router 2 at 6020, where flow 1 is
/// decoded until then. Flow 2 has been there since 5520 and goes first: it ends at 12040. Without
/// flow 1, flow 0 gets to router 2 at 5020 and is decoded until 7020 while flow 2 waits: it goes on
/// 1 ns later than with flow 1, and ends at 13040.
#[test]
fn without_one_transfer_another_takes_longer() {
    let line = Line::new(1, 4);
    let flows = [message(3, 1, 1, 1000), message(3, 2, 1, 0), message(1, 3, 1, 1500)];
    for model in Model::EXACT {
        let with = model.traffic(&line, &flows);
        let without = model.traffic(&line, &[flows[0], flows[2]]);
        assert_eq!((with[2].end_ps, without[1].end_ps), (12_040, 13_040));
    }
}
