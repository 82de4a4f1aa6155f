//! Traffic files: a YAML list of transfers, read and checked against a machine.

use crate::diag::{Diagnostic, Failure, nearest};
use crate::engine::{Flow, Issuer};
use crate::ir::PeId;
use crate::topology::Topology;
use crate::units::{Ps, ns};
use crate::yaml::{Section, read_list};

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The issuer reads a slice.
    Read,
    /// The issuer writes a slice.
    Write,
    /// A PE sends to the DMA of another one.
    Message,
}

impl Op {
    /// The name in traffic files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Message => "message",
        }
    }
}

/// An entry of a traffic file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// What it does; reads and writes of a PE are timed alike.
    pub op: Op,
    /// The transfer.
    pub flow: Flow,
}

impl Request {
    /// The PE that moves the bytes; `None` for the host.
    #[must_use]
    pub const fn from(&self) -> Option<PeId> {
        match self.flow.issuer {
            Issuer::Dma(pe) | Issuer::Message(pe) => Some(pe),
            Issuer::HostWrite | Issuer::HostRead => None,
        }
    }
}

const OPS: [(&str, Op); 3] = [("read", Op::Read), ("write", Op::Write), ("message", Op::Message)];

/// No transfer starts later: 1000 s.
const LATEST_NS: f64 = 1e12;
/// No transfer is larger, whatever the slice.
const LARGEST: u64 = 1 << 31;

/// Reads a traffic file: a list of maps with the keys `from` (a PE, or `host`), `to` (a PE), `bytes`,
/// and, if they differ from their defaults, `op` (`read`), `start_ns` (0) and `channel`, the first HBM
/// channel (the number of the transfer in the list, modulo the channels). `file` is how messages name it.
///
/// # Errors
/// Every mistake found, with the bytes of the text it is at: `KB0301` to `KB0308` for the form,
/// `KB0317` for what is no size, `KB0318` for a PE that does not exist, `KB0319` for a file without
/// transfers, `KB0320` for a transfer that cannot be.
pub fn requests(topology: &Topology, file: &str, text: &str) -> Result<Vec<Request>, Failure> {
    let requests = read_list(file, text, "transfers", |i, s| request(topology, i, s))?;
    if requests.is_empty() {
        let d = Diagnostic::error("KB0319", format!("`{file}` lists no transfers"));
        let help = "add a line such as `- {from: sip0.cube0.pe1, to: sip0.cube0.pe0, bytes: 16KiB}`";
        return Err(d.help(help).into());
    }
    Ok(requests)
}

fn request(topology: &Topology, i: usize, s: &mut Section<'_, '_>) -> Request {
    let machine = topology.machine();
    let from = end(s, "from", topology, true);
    let to = end(s, "to", topology, false).flatten().unwrap_or_default();
    let most = LARGEST.min(machine.hbm.slice_bytes);
    let bytes = s.size("bytes", most) as u32;
    let op = s.choice_or("op", &OPS, Op::Read);
    let start_ps: Ps = if s.has("start_ns") { ns(s.number("start_ns", [0.0, LATEST_NS])) } else { 0 };
    let channel = s.has("channel").then(|| s.index("channel", machine.hbm.channels));
    let cannot = |key, message: String, help: &str| s.error(key, "KB0320", message, help);
    let issuer = match (from, op) {
        (Some(None), Op::Read) => Issuer::HostRead,
        (Some(None), Op::Write) => Issuer::HostWrite,
        (Some(None), Op::Message) => {
            cannot("op", "the host sends no messages".to_owned(), "write `op: write` or `op: read`");
            Issuer::HostWrite
        }
        (Some(Some(pe)), Op::Message) => {
            if pe == to {
                let text = format!("`{}` sends a message to itself", machine.pe_name(pe));
                cannot("to", text, "name another PE, or use `op: write` for its slice");
            }
            Issuer::Message(pe)
        }
        (Some(Some(pe)), _) => Issuer::Dma(pe),
        // A mistake has been recorded; the value counts for nothing.
        (None, _) => Issuer::HostRead,
    };
    if channel.is_some() && op == Op::Message {
        let help = "remove `channel`, or use `op: write`";
        cannot("channel", "a message goes to no HBM channel".to_owned(), help);
    }
    let channel = channel.unwrap_or((i % machine.hbm.channels as usize) as u32);
    Request { op, flow: Flow { start_ps, ..super::flow(machine, issuer, to, bytes, channel) } }
}

/// An end of a transfer: `Some(None)` is the host, `None` a recorded mistake.
fn end(s: &mut Section<'_, '_>, key: &'static str, topology: &Topology, host: bool) -> Option<Option<PeId>> {
    let machine = topology.machine();
    let word = s.text(key)?;
    if host && word == "host" {
        return Some(None);
    }
    if let Some(pe) = machine.pe_named(&word) {
        return Some(Some(pe));
    }
    if word == "host" {
        let text = format!("`{}` cannot be `host`", s.full(key));
        s.error(key, "KB0320", text, "write `from: host` and `op: read` to read into the host");
        return None;
    }
    let pes: Vec<PeId> = (0..machine.pe_count()).map(PeId).collect();
    let names: Vec<String> = pes.iter().map(|pe| machine.pe_name(*pe)).collect();
    let last = names.last().map_or("", String::as_str);
    let known = names.iter().map(String::as_str).chain(host.then_some("host"));
    let help = match nearest(&word, known) {
        _ if is_pe(&word) => format!("the last PE of the machine is `{last}`"),
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            format!("write a PE from `sip0.cube0.pe0` to `{last}`{}", if host { ", or `host`" } else { "" })
        }
    };
    s.error(key, "KB0318", format!("the machine has no PE `{word}`"), help);
    None
}

/// Whether a word has the form of a PE's name.
fn is_pe(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let level = |(part, prefix): (&&str, &str)| {
        part.strip_prefix(prefix)
            .is_some_and(|n| n.parse::<u32>().is_ok_and(|number| number.to_string() == n))
    };
    parts.len() == 3 && parts.iter().zip(["sip", "cube", "pe"]).all(level)
}
