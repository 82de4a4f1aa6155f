//! Machines for tests: the default one with places of its text changed, lines of PEs, at random.

use super::fake::Line;
use crate::engine::Fabric;
use crate::topology::Topology;
use crate::units::ns;
use proptest::prelude::*;

/// The text with the value at a dotted path of keys changed.
pub(crate) fn set(text: &str, path: &str, value: &str) -> String {
    let (mut at, mut out, mut found) = (Vec::<(usize, &str)>::new(), String::new(), false);
    for line in text.lines() {
        let body = line.trim_start();
        if let Some((key, _)) = body.split_once(':').filter(|_| !body.starts_with('#')) {
            let indent = line.len() - body.len();
            at.retain(|(i, _)| *i < indent);
            at.push((indent, key));
            if at.iter().map(|(_, key)| *key).eq(path.split('.')) {
                out += &format!("{:indent$}{key}: {value}\n", "");
                found = true;
                continue;
            }
        }
        out += line;
        out.push('\n');
    }
    assert!(found, "{path}");
    out
}

/// The default machine with changes.
pub(crate) fn changed(changes: &[(&str, String)]) -> Topology {
    let text = Topology::DEFAULT_YAML.to_owned();
    let text = changes.iter().fold(text, |text, (path, value)| set(&text, path, value));
    Topology::from_yaml("changed.yaml", &text).unwrap_or_else(|failure| panic!("{failure}\n{changes:?}"))
}

/// What a random machine is made of; small numbers are simple machines.
#[derive(Clone, Debug)]
pub(crate) enum Spec {
    Default,
    /// Cubes, PEs in each, a seed of numbers.
    Line(u32, u32, Vec<u8>),
    Mesh(Mesh),
}

#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    sips: u32,
    cubes: [u32; 2],
    routers: [u32; 2],
    hole: bool,
    pes: u32,
    connections: u32,
    striped: bool,
    /// Bandwidths, delays, sizes, each taken from a list.
    numbers: Vec<u8>,
}

const BANDWIDTHS: [&str; 8] = ["256", "128", "512", "64", "100", "333", "32", "7.7"];
const LENGTHS: [&str; 4] = ["0", "0", "1", "123.4"];
const OVERHEADS: [&str; 6] = ["0", "2", "1", "8", "0.5", "3.001"];

/// How many numbers a machine takes.
const NUMBERS: usize = 32;

pub(crate) fn specs() -> impl Strategy<Value = Spec> {
    let numbers = || prop::collection::vec(any::<u8>(), NUMBERS);
    let mesh = (
        (1..3_u32, 1..4_u32, 1..3_u32),
        (2..5_u32, 2..5_u32, any::<bool>(), 0..5_usize),
        (1..3_u32, any::<bool>(), numbers()),
    );
    let mesh =
        mesh.prop_map(|((sips, w, h), (columns, rows, hole, pes), (connections, striped, numbers))| {
            let hole = hole && columns > 2 && rows > 2;
            let most = columns * rows - u32::from(hole);
            let pes = [1, 2, 3, 4, 6][pes].min(if most < 4 { 2 } else { most / 2 * 2 });
            let (cubes, routers) = ([w, h], [columns, rows]);
            Spec::Mesh(Mesh { sips, cubes, routers, hole, pes, connections, striped, numbers })
        });
    prop_oneof![
        4 => (1..4_u32, 1..5_u32, numbers()).prop_map(|(cubes, pes, numbers)| Spec::Line(cubes, pes, numbers)),
        12 => mesh,
        1 => Just(Spec::Default),
    ]
}

impl Spec {
    pub fn build(&self) -> Box<dyn Fabric> {
        match self {
            Spec::Default => Box::new(Topology::default_machine()),
            Spec::Line(cubes, pes, numbers) => Box::new(line(*cubes, *pes, numbers)),
            Spec::Mesh(mesh) => Box::new(mesh.build()),
        }
    }
}

fn pick<'a>(numbers: &mut impl Iterator<Item = &'a u8>, list: &[&'static str]) -> &'static str {
    list[usize::from(*numbers.next().unwrap_or(&0)) % list.len()]
}

fn line(cubes: u32, pes: u32, numbers: &[u8]) -> Line {
    let mut line = Line::new(cubes, pes);
    let (plain, mut numbers) = (numbers[0].is_multiple_of(4), numbers.iter());
    if plain {
        return line;
    }
    let number = |text: &str| text.parse::<f64>().unwrap_or(0.0);
    for _ in 0..line.edge_count().min(12) {
        let which = usize::from(*numbers.next().unwrap_or(&0)) % line.edge_count();
        line.reshape(which, number(pick(&mut numbers, &BANDWIDTHS)));
    }
    line.overheads_ps = [(); 2].map(|()| ns(number(pick(&mut numbers, &OVERHEADS))));
    line
}

impl Mesh {
    pub fn build(&self) -> Topology {
        let Mesh { sips, cubes: [w, h], routers: [columns, rows], pes, connections, .. } = self;
        let all = (0..rows * columns).map(|i| (i / columns, i % columns));
        let places: Vec<String> =
            all.filter(|at| !self.hole || *at != (1, 1)).map(|(r, c)| format!("r{r}c{c}")).collect();
        // A step that shares no divisor with the number of routers meets each of them once.
        let n = places.len();
        let shift = usize::from(self.numbers[0]) % n;
        let step = [7, 5, 3, 1].into_iter().find(|s| !n.is_multiple_of(*s) || *s == 1).unwrap_or(1);
        let of_pes: Vec<&str> = (0..*pes as usize).map(|i| places[(shift + i * step) % n].as_str()).collect();
        let along = |most: u32| (0..*connections).map(|k| (k * (most - 1)).to_string()).collect::<Vec<_>>();
        let list = |items: Vec<String>| format!("[{}]", items.join(", "));
        let mut numbers = self.numbers[1..].iter();
        let mut changes: Vec<(&str, String)> = vec![
            ("system.sips.count", sips.to_string()),
            ("sip.cube_mesh", format!("{{w: {w}, h: {h}}}")),
            ("sip.io.phys.count", (1 + u32::from(self.numbers[0]) % w).to_string()),
            ("cube.noc.grid", format!("{{w: {columns}, h: {rows}}}")),
            ("cube.noc.missing", if self.hole { "[r1c1]".into() } else { "[]".into() }),
            ("cube.ucie.connections", connections.to_string()),
            ("cube.ucie.policy", if self.striped { "striped".into() } else { "first".into() }),
            ("cube.ucie.rows", list(along(*rows))),
            ("cube.ucie.columns", list(along(*columns))),
            ("cube.pes.grid", format!("{{w: {pes}, h: 1}}")),
            ("cube.pes.routers", format!("[{}]", of_pes.join(", "))),
            ("cube.m_cpu.router", "r0c0".into()),
            ("cube.sram.router", "r0c0".into()),
        ];
        let mut take = |keys: &[&'static str], list: &[&'static str], changes: &mut Vec<(&str, String)>| {
            changes.extend(keys.iter().map(|key| (*key, pick(&mut numbers, list).to_owned())));
        };
        // Some machines keep the default numbers, which make many things happen at one instant.
        if self.numbers[0].is_multiple_of(3) {
            return changed(&changes);
        }
        let bandwidths = [
            "cube.noc.router_gbs",
            "cube.pes.dma_gbs",
            "cube.hbm.router_gbs",
            "cube.ucie.router_gbs",
            "cube.ucie.port_gbs",
            "cube.ucie.crossing_gbs",
            "sip.io.pcie_ep.noc_gbs",
            "system.switch.pcie_gbs",
        ];
        take(&bandwidths, &BANDWIDTHS, &mut changes);
        let lengths =
            ["cube.noc.router_mm", "cube.pes.dma_mm", "cube.ucie.crossing_mm", "sip.io.pcie_ep.noc_mm"];
        take(&lengths, &LENGTHS, &mut changes);
        let overheads = [
            "cube.noc.overhead_ns",
            "cube.ucie.overhead_ns",
            "cube.ucie.connection_overhead_ns",
            "sip.io.pcie_ep.overhead_ns",
            "sip.io.io_noc.overhead_ns",
            "sip.io.phys.overhead_ns",
            "system.switch.overhead_ns",
        ];
        take(&overheads, &OVERHEADS, &mut changes);
        take(&["cube.hbm.channels"], &["8", "8", "4", "1"], &mut changes);
        take(&["cube.hbm.channel_gbs"], &["32", "32", "33.3", "100"], &mut changes);
        take(&["system.flit_bytes"], &["256", "256", "64", "512"], &mut changes);
        changed(&changes)
    }
}
