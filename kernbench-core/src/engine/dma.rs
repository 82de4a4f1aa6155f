//! Loads and stores: their transfers, one after another, each until its response (rule 6 of the machine).

use super::fabric::{Path, Purpose};
use super::queue::EventKind;
use super::sim::Simulation;
use super::wires::{Load, Sink, Wires};
use crate::ir::{OpId, OpKind, Transfer};
use crate::units::Ps;

impl<W: Wires> Simulation<'_, W> {
    /// Starts the next transfer of a load or store at `at`, or completes the op then.
    pub fn next_transfer(&mut self, p: usize, op: OpId, at: Ps) {
        let program = self.pe_program(p);
        let (OpKind::Load { access, .. } | OpKind::Store { access, .. }) = self.kind(p, op) else { return };
        let e = self.kind(p, op).engine() as usize;
        let transfers = program.transfers_of(*access);
        while let Some(transfer) = transfers.get(self.pes[p].transfer[e] as usize) {
            if transfer.bytes() == 0 {
                self.pes[p].transfer[e] += 1;
                continue;
            }
            let path = self.dma_path(p, op);
            let at = at + self.translation_ps(transfer);
            let id = self.id(p, op);
            let sink = Sink::Hbm(transfer.home);
            self.wires.start(&self.paths, id, path, Load::from(transfer), sink, at);
            return;
        }
        self.at(p, op, at, EventKind::Done);
    }

    /// What a DMA waits for the addresses of a transfer, one page after another, before a flit leaves.
    pub fn translation_ps(&self, transfer: &Transfer) -> Ps {
        let mmu = &self.machine.mmu;
        if mmu.overhead_ps == 0 { 0 } else { mmu.overhead_ps * transfer.pages(mmu.page_bytes) }
    }

    /// The path of the transfer under way.
    fn dma_path(&mut self, p: usize, op: OpId) -> Path {
        let program = self.pe_program(p);
        let home = match self.kind(p, op) {
            OpKind::Load { access, .. } | OpKind::Store { access, .. } => {
                let e = self.kind(p, op).engine() as usize;
                program.transfers_of(*access)[self.pes[p].transfer[e] as usize].home
            }
            _ => program.pe,
        };
        let path = self.paths.get(self.fabric, Purpose::Dma, program.pe, home);
        self.paths.path(path)
    }

    /// The bytes of a transfer or message are at their memory or PE at `done`.
    pub fn arrived(&mut self, p: usize, op: OpId, done: Ps) {
        if matches!(self.kind(p, op), OpKind::Send { .. }) {
            return self.delivered(p, op, done);
        }
        let path = self.dma_path(p, op);
        let response = done + path.empty_ps;
        let e = self.kind(p, op).engine() as usize;
        self.pes[p].transfer[e] += 1;
        self.next_transfer(p, op, response);
    }
}
