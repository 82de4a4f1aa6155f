//! What fills the scratch when it overflows, by binding.

use super::recorder::State;
use crate::diag::Diagnostic;
use std::fmt::Write;

/// Files the overflow with a map of the scopes and tiles of the moment that needs most.
pub(crate) fn report_overflow(state: &mut State, peak: u64, capacity: u32, tcm: u64) {
    let turns = &state.turns;
    // The chain of turns that reaches highest, from the kernel inwards.
    let top = (0..turns.turns.len())
        .max_by_key(|&t| {
            let turn = &turns.turns[t];
            let rest = turns
                .instances
                .get(turn.instance as usize)
                .map_or(0, |i| u64::from(i.buffers - 1 - turn.number % i.buffers) * i.turn_bytes);
            (turn.base + u64::from(turn.live) + rest, std::cmp::Reverse(t))
        })
        .unwrap_or(0);
    let mut chain = vec![top as u32];
    while let Some(&turn) = chain.last()
        && turns.turns[turn as usize].parent != u32::MAX
    {
        chain.push(turns.turns[turn as usize].parent);
    }
    let mut map = String::new();
    let mut largest = None;
    for (depth, &t) in chain.iter().rev().enumerate() {
        let turn = &turns.turns[t as usize];
        let buffers = turns.instances.get(turn.instance as usize).map_or(1, |i| i.buffers);
        let name = if depth == 0 { "kernel".to_owned() } else { format!("scope {depth}") };
        let times = if buffers > 1 { format!(", {buffers} buffers") } else { String::new() };
        let _ = write!(map, "\n  {name:<10} {:>10} B{times}", turn.need * u64::from(buffers));
        for tile in state.program.tiles.iter().enumerate().filter(|(i, x)| x.turn == t && x.base.at() == *i) {
            let tile = tile.1;
            let site = state.program.ops.get(tile.def.at()).map(|op| op.site);
            let binding = site.map_or("_", |s| match state.shared.sites.get(s).source.name {
                "" => "_",
                n => n,
            });
            let [m, n] = tile.shape;
            let _ = write!(map, "\n    {binding:<16} {:>10} B  {}[{m}, {n}]", tile.bytes(), tile.ty);
            if largest.is_none_or(|(bytes, _)| tile.bytes() > bytes) {
                largest = site.map(|s| (tile.bytes(), s));
            }
        }
    }
    let Some((_, site)) = largest else { return };
    let pe = state.program.pe;
    state.mistake(pe, site, "KB0203", || {
        Diagnostic::error(
            "KB0203",
            format!("the kernel needs {peak} bytes of scratch at once, but a PE has {capacity} bytes:{map}"),
        )
        .help(match peak.next_multiple_of(1024) {
            more if more <= tcm => format!("use smaller blocks or fewer `buffers`, open scopes later, or launch with `scratch_bytes: Some({more})` (`--scratch {more}`)"),
            _ => format!("use smaller blocks or fewer `buffers`, or open scopes later: all of a PE's TCM is {tcm} bytes"),
        })
    });
}
