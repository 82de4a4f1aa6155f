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
    /// Ranks, if it says so.
    pub world_size: Option<u32>,
    /// The cube of each SIP that talks to the other SIPs.
    pub root_cube: u32,
    /// Where `module` is written.
    pub module_place: Place,
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
    let mut names = [("", RankTopology::Ring1d); RankTopology::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = (RankTopology::ALL[i].name(), RankTopology::ALL[i]);
        i += 1;
    }
    names
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
            let defaults = root.section("defaults", |s| (defaults(s), s.place("algorithm")));
            let kind = defaults.as_ref().map_or(BufferKind::Tcm, |(d, _)| d.buffer_kind);
            let algorithms = root.section("algorithms", |s| {
                let entries = s.names();
                let names: Vec<&str> = entries.iter().map(|(key, _)| key.name.as_str()).collect();
                if let Some((d, place)) = &defaults
                    && !d.algorithm.is_empty()
                    && !names.contains(&d.algorithm.as_str())
                {
                    let text = format!(
                        "`defaults.algorithm` is `{}`, which `algorithms` does not have",
                        d.algorithm
                    );
                    let help = one_of(&d.algorithm, &names);
                    s.log.push(Diagnostic::error("KB0308", text).at(place.clone(), "").help(help));
                }
                let read = |(key, value)| s.enter(key, value, |s| algorithm(s, key, kind));
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

    /// Ranks of an algorithm: its own count, else the default's, else one per SIP.
    #[must_use]
    pub fn world_size(&self, algorithm: &Algorithm, sips: u32) -> u32 {
        algorithm.world_size.or(self.defaults.world_size).unwrap_or(sips)
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
        Err(Diagnostic::error("KB0308", text).at(self.module_place.clone(), "").help(help))
    }
}

fn one_of(word: &str, names: &[&str]) -> String {
    match nearest(word, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of `{}`", names.join("`, `")),
    }
}

fn defaults(s: &mut Section<'_, '_>) -> Defaults {
    let (defaults, sound) = s.sound(|s| Defaults {
        algorithm: s.text("algorithm").unwrap_or_default(),
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

fn algorithm(s: &mut Section<'_, '_>, key: &Key, kind: BufferKind) -> Algorithm {
    let module = s.text("module").unwrap_or_default();
    Algorithm {
        name: key.name.clone(),
        module: module.rsplit('.').next().unwrap_or_default().to_owned(),
        topology: s.choice("topology", &TOPOLOGIES),
        buffer_kind: s.choice_or("buffer_kind", &BUFFER_KINDS, kind),
        n_elem: s.has("n_elem").then(|| s.count("n_elem")),
        world_size: s.has("world_size").then(|| s.count("world_size")),
        root_cube: if s.has("root_cube") { s.whole("root_cube", 0) } else { 0 },
        module_place: s.place("module"),
    }
}
