//! Sending and receiving while recording: which link a direction is, and whether a message fits.

use super::recorder::{Recorder, State, bytes_of, text};
use crate::diag::Diagnostic;
use crate::ir::{LinkId, SiteId};
use crate::topology::PeAt;
use crate::ty::{Dir, ElementType};

impl Recorder {
    /// The link to (`sending`) or from the neighbour in a direction; a mistake if there is none.
    pub(crate) fn link(&self, s: &mut State, site: SiteId, dir: Dir, sending: bool) -> Option<LinkId> {
        let links = &self.launch.links;
        let link = if sending { links.send(self.pe, dir) } else { links.recv(self.pe, dir) };
        if link.is_none() {
            let have: Vec<&str> = Dir::ALL
                .iter()
                .filter(|&&d| if sending { links.send(self.pe, d) } else { links.recv(self.pe, d) }.is_some())
                .map(|d| d.name())
                .collect();
            let PeAt { sip, cube, pe } = self.at;
            s.mistake(self.pe, site, "KB0106", || {
                Diagnostic::error(
                    "KB0106",
                    format!("PE {pe} of cube {cube} of SIP {sip} has no neighbour in direction `{dir}`"),
                )
                .help(match have[..] {
                    [] => "launch on more PEs or cubes: this one has no neighbours".to_owned(),
                    _ => format!(
                        "it has neighbours in {}: leave the PEs at the edge out with an `if`",
                        have.join(", ")
                    ),
                })
            });
        }
        link
    }

    /// Whether a message fits a slot; a mistake with the numbers if not.
    pub(crate) fn fits_slot(&self, s: &mut State, site: SiteId, ty: ElementType, shape: [u32; 2]) -> bool {
        let bytes = bytes_of(ty, shape);
        let slot = self.launch.slot_bytes;
        if bytes > slot {
            s.mistake(self.pe, site, "KB0107", || {
                let row = u64::from(shape[1]) * u64::from(ty.bytes());
                let d = Diagnostic::error(
                    "KB0107",
                    format!("a message of {} {ty} has {bytes} bytes, but a slot holds {slot} bytes", text(shape)),
                );
                match slot.checked_div(row) {
                    Some(rows) if rows > 0 => d.help(format!(
                        "send blocks of at most {rows} rows (`tl::slot_size()` gives a slot's bytes), or raise `slot_size` in ccl.yaml"
                    )),
                    _ => d.help("send smaller slices (`cols`), or raise `slot_size` in ccl.yaml"),
                }
            });
        }
        bytes <= slot
    }
}
