//! `ccl.yaml`: which collective algorithm runs, over which neighbours, with which queues.

use crate::diag::{Diagnostic, Failure, Place, nearest};
use crate::topology::BufferKind;
pub use crate::topology::RankTopology;
use crate::yaml::{self, Key, Section};

#[cfg(test)]
mod tests;

/// The configuration of collectives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ccl {
    /// What holds unless an algorithm says otherwise.
    pub defaults: Defaults,
    /// The algorithms in the order of the file; at least the default one.
    pub algorithms: Vec<Algorithm>,
}

/// The section `defaults`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// The name of the algorithm an all-reduce uses.
    pub algorithm: String,
    /// The name of the algorithm of an all-reduce larger than a slot; `algorithm` if it is not given.
    pub large_algorithm: Option<String>,
    /// Where the slots of a link are.
    pub buffer_kind: BufferKind,
    /// How a waiting PE learns of a credit.
    pub backpressure: Backpressure,
    /// Slots of a link's ring.
    pub n_slots: u32,
    /// Bytes of a slot.
    pub slot_size: u32,
    /// Bytes of a chunk of the IPCQ channel.
    pub vc_chunk_size: u32,
    /// Bytes a credit takes on its way back.
    pub ipcq_credit_size_bytes: u32,
    /// Ranks of a process group; the number of SIPs if it is not given.
    pub world_size: Option<u32>,
}

/// An entry of the section `algorithms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// Its key.
    pub name: String,
    /// The last segment of `module`: the name the algorithm is registered by.
    pub module: String,
    /// Whom its ranks have as neighbours.
    pub topology: RankTopology,
    /// Where the slots of its links are.
    pub buffer_kind: BufferKind,
    /// Elements of its tensor, where a run does not say.
    pub n_elem: Option<u32>,
    /// Ranks of its process group: its own key, else the default's; one per SIP if neither says so.
    pub world_size: Option<u32>,
    /// The cube of each SIP that talks to the other SIPs; the algorithm's own choice if it is not given.
    pub root_cube: Option<u32>,
    /// Where its keys are written.
    pub places: Places,
}

/// Where the values of an algorithm's keys are written; the entry's name for those left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Places {
    pub module: Place,
    pub topology: Place,
    pub buffer_kind: Place,
    pub n_elem: Place,
    /// That of the default if the entry has none of its own.
    pub world_size: Place,
    pub root_cube: Place,
}

/// How a waiting PE learns of a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backpressure {
    /// At once.
    Sleep,
    /// At its next poll.
    Poll,
}

const BUFFER_KINDS: [(&str, BufferKind); 3] =
    [("tcm", BufferKind::Tcm), ("sram", BufferKind::Sram), ("hbm", BufferKind::Hbm)];

const TOPOLOGIES: [(&str, RankTopology); RankTopology::ALL.len()] = {
    let mut all = [("", RankTopology::Ring1d); RankTopology::ALL.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = (RankTopology::ALL[i].name(), RankTopology::ALL[i]);
        i += 1;
    }
    all
};

impl Ccl {
    /// The text of the default configuration, as shipped in `ccl.yaml`.
    pub const DEFAULT_YAML: &str = include_str!("../../ccl.yaml");

    /// Reads a `ccl.yaml`. `file` is how messages name it.
    ///
    /// # Errors
    /// Every mistake found, with the bytes of the text it is at.
    pub fn from_yaml(file: &str, text: &str) -> Result<Ccl, Failure> {
        let read = yaml::read(file, text, |root| {
            let defaults = root.section("defaults", |s| {
                let defaults = defaults(s);
                let places = ["algorithm", "large_algorithm", "world_size"].map(|key| s.place(key));
                (defaults, places)
            });
            let algorithms = root.section("algorithms", |s| {
                let entries = s.names();
                if let Some((defaults, [small, large, _])) = &defaults {
                    let names: Vec<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
                    known(s, "algorithm", &defaults.algorithm, small, &names);
                    if let Some(name) = &defaults.large_algorithm {
                        known(s, "large_algorithm", name, large, &names);
                    }
                }
                let defaults = defaults.as_ref().map(|(defaults, places)| (defaults, &places[2]));
                let read = |(key, value)| s.enter(key, value, |s| algorithm(s, key, defaults));
                entries.into_iter().filter_map(read).collect::<Vec<_>>()
            });
            let ((defaults, _), algorithms) = (defaults?, algorithms?);
            Some(Ccl { defaults, algorithms })
        })?;
        read.ok_or_else(|| Failure(vec![]))
    }

    /// The configuration that holds when none is given.
    ///
    /// ```
    /// let ccl = kernbench_core::ccl::Ccl::default_config();
    /// assert_eq!(ccl.defaults.algorithm, "ring_allreduce");
    /// ```
    #[must_use]
    pub fn default_config() -> Ccl {
        match Self::from_yaml("ccl.yaml", Self::DEFAULT_YAML) {
            Ok(ccl) => ccl,
            // The text is part of the binary and parsed by every test.
            Err(failure) => unreachable!("the built-in ccl.yaml is wrong: {failure}"),
        }
    }

    /// An algorithm by its name.
    #[must_use]
    pub fn algorithm(&self, name: &str) -> Option<&Algorithm> {
        self.algorithms.iter().find(|a| a.name == name)
    }

    /// The algorithm of an all-reduce of `bytes` bytes: `large_algorithm` above one slot, else `algorithm`.
    #[must_use]
    pub fn all_reduce(&self, bytes: u64) -> Option<&Algorithm> {
        let large = bytes > u64::from(self.defaults.slot_size);
        let name = self.defaults.large_algorithm.as_ref().filter(|_| large);
        self.algorithm(name.unwrap_or(&self.defaults.algorithm))
    }
}

impl Algorithm {
    /// Checks that the module is one of those registered.
    ///
    /// # Errors
    /// `KB0308` at `module`, with the nearest registered name.
    pub fn check_module(&self, registered: &[&str]) -> Result<(), Diagnostic> {
        if registered.contains(&self.module.as_str()) {
            return Ok(());
        }
        let text = format!("no algorithm is registered as `{}`", self.module);
        let help = one_of(&self.module, registered);
        Err(Diagnostic::error("KB0308", text).at(self.places.module.clone(), "").help(help))
    }

    /// Checks that the topology is one the module can run on.
    ///
    /// # Errors
    /// `KB0321` at `topology`, with those it can run on.
    pub fn check_topology(&self, allowed: &[RankTopology]) -> Result<(), Diagnostic> {
        if allowed.contains(&self.topology) {
            return Ok(());
        }
        let names: Vec<&str> = allowed.iter().map(|t| t.name()).collect();
        let text = format!("`{}` does not run on `{}`", self.module, self.topology);
        Err(Diagnostic::error("KB0321", text).at(self.places.topology.clone(), "").help(among(&names)))
    }

    /// Its number of ranks on a machine of `sips` SIPs, each of which is one rank at most.
    ///
    /// # Errors
    /// `KB0322` at the `world_size` that is larger.
    pub fn check_world(&self, sips: u32) -> Result<u32, Diagnostic> {
        match self.world_size {
            Some(ranks) if ranks > sips => {
                let text = format!(
                    "`world_size` is {ranks} for `{}`, but the machine has {sips} SIP{}, one for each rank",
                    self.name,
                    if sips == 1 { "" } else { "s" }
                );
                Err(Diagnostic::error("KB0322", text)
                    .at(self.places.world_size.clone(), "")
                    .help(format!("write at most {sips}, or raise `system.sips.count` in topology.yaml")))
            }
            ranks => Ok(ranks.unwrap_or(sips)),
        }
    }

    /// Checks that it names no other number of ranks than the process group has, which is that of `group`.
    ///
    /// # Errors
    /// `KB0322` at the `world_size` that differs.
    pub fn check_same_world(&self, group: &Algorithm, ranks: u32) -> Result<(), Diagnostic> {
        match self.world_size {
            Some(own) if own != ranks => {
                let text = format!(
                    "`world_size` is {own} for `{}`, but the process group has {ranks}, those of `{}`",
                    self.name, group.name
                );
                Err(Diagnostic::error("KB0322", text)
                    .at(self.places.world_size.clone(), "")
                    .help("give all algorithms of a process group the same, or leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// Its root cube, if it names one, on a machine of `cubes` cubes in a SIP.
    ///
    /// # Errors
    /// `KB0322` at `root_cube` if there is no such cube.
    pub fn check_root_cube(&self, cubes: u32) -> Result<Option<u32>, Diagnostic> {
        match self.root_cube {
            Some(cube) if cube >= cubes => {
                let text = format!("`root_cube` is {cube} for `{}`, but a SIP has {cubes} cubes", self.name);
                Err(Diagnostic::error("KB0322", text)
                    .at(self.places.root_cube.clone(), "")
                    .help(format!("write a cube from 0 to {}, or leave it out", cubes.saturating_sub(1))))
            }
            cube => Ok(cube),
        }
    }
}

fn one_of(word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => among(names),
    }
}

fn among(names: &[&str]) -> String {
    match names {
        [] => "there is none to choose from: register one first".to_owned(),
        [name] => format!("write `{name}`"),
        _ => format!("write one of `{}`", names.join("`, `")),
    }
}

fn defaults(s: &mut Section<'_, '_>) -> Defaults {
    let (defaults, sound) = s.sound(|s| Defaults {
        algorithm: s.text("algorithm").unwrap_or_default(),
        large_algorithm: s.has("large_algorithm").then(|| s.text("large_algorithm").unwrap_or_default()),
        buffer_kind: s.choice_or("buffer_kind", &BUFFER_KINDS, BufferKind::Tcm),
        backpressure: s.choice_or(
            "backpressure",
            &[("sleep", Backpressure::Sleep), ("poll", Backpressure::Poll)],
            Backpressure::Sleep,
        ),
        n_slots: s.count_or("n_slots", 4),
        slot_size: s.count_or("slot_size", 4096),
        vc_chunk_size: s.count_or("vc_chunk_size", 256),
        ipcq_credit_size_bytes: s.count_or("ipcq_credit_size_bytes", 16),
        world_size: s.has("world_size").then(|| s.count("world_size")),
    });
    let (slot, chunk) = (defaults.slot_size, defaults.vc_chunk_size);
    if sound && slot < chunk {
        s.error(
            "slot_size",
            "KB0315",
            format!("`defaults.slot_size` is {slot} B, less than `vc_chunk_size`, {chunk} B"),
            format!("write at least {chunk}, or a smaller `vc_chunk_size`"),
        );
    }
    defaults
}

fn algorithm(s: &mut Section<'_, '_>, key: &Key, defaults: Option<(&Defaults, &Place)>) -> Algorithm {
    let module = s.text("module").unwrap_or_default();
    let kind = defaults.map_or(BufferKind::Tcm, |(d, _)| d.buffer_kind);
    let own_world = s.has("world_size").then(|| s.count("world_size"));
    let default_world = defaults.and_then(|(d, place)| Some((d.world_size?, place.clone())));
    let (world_size, world_place) = match (own_world, default_world) {
        (None, Some((ranks, place))) => (Some(ranks), place),
        (own, _) => (own, s.place("world_size")),
    };
    Algorithm {
        name: key.name.clone(),
        module: module.rsplit('.').next().unwrap_or_default().to_owned(),
        topology: s.choice("topology", &TOPOLOGIES),
        buffer_kind: s.choice_or("buffer_kind", &BUFFER_KINDS, kind),
        n_elem: s.has("n_elem").then(|| s.count("n_elem")),
        world_size,
        root_cube: s.has("root_cube").then(|| s.whole("root_cube", 0)),
        places: Places {
            module: s.place("module"),
            topology: s.place("topology"),
            buffer_kind: s.place("buffer_kind"),
            n_elem: s.place("n_elem"),
            world_size: world_place,
            root_cube: s.place("root_cube"),
        },
    }
}

/// Whether the algorithm a default names is there; a mistake if not.
fn known(s: &Section<'_, '_>, key: &str, name: &str, place: &Place, names: &[&str]) {
    if name.is_empty() || names.contains(&name) {
        return;
    }
    let text = format!("`defaults.{key}` is `{name}`, which `algorithms` does not have");
    s.log.push(Diagnostic::error("KB0308", text).at(place.clone(), "").help(one_of(name, names)));
}
