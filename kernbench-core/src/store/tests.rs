use super::*;
use crate::ir::OpId;
use crate::ir::{Access, AccessId, PeProgram, Transfer};

const T: TensorId = TensorId(3);

/// The versions of a range as text: `0..4 host@0, 4..8 -, 8..9 pe2.op7@1 in pe2`.
fn shown(store: &Store, range: Range<u64>) -> String {
    let part = |(r, v): (Range<u64>, Option<Version>)| match v {
        None => format!("{r:?} -"),
        Some(Version { launch, writer: Writer::Host }) => format!("{r:?} host@{launch}"),
        Some(Version { launch, writer: Writer::Op { pe, op, holder } }) => {
            format!("{r:?} pe{pe}.op{op}@{launch} in pe{holder}")
        }
    };
    store.versions(T, range).map(part).collect::<Vec<_>>().join(", ")
}

/// A kernel's store of some elements of the tensor.
fn note(s: &mut Store, range: Range<u64>, launch: u32, (pe, op, holder): (PeId, OpId, PeId)) {
    s.newest_launch = s.newest_launch.max(launch);
    s.get_mut(T).unwrap().versions.store(range, launch, pe, op, holder);
}

#[test]
fn ranges_are_cut_by_version_and_gaps_are_shown() {
    let mut s = Store::new(false);
    s.create(T, ElementType::F16, [4, 4]);
    assert_eq!(shown(&s, 0..16), "0..16 -");
    assert_eq!(s.unwritten(T, 0..16), Some(0..16));
    s.write_host_at(T, 2, &[0; 8]);
    note(&mut s, 5..8, 1, (PeId(2), OpId(7), PeId(2)));
    note(&mut s, 8..10, 1, (PeId(2), OpId(7), PeId(2)));
    assert_eq!(shown(&s, 0..16), "0..2 -, 2..5 host@0, 5..10 pe2.op7@1 in pe2, 10..16 -");
    assert_eq!(shown(&s, 3..7), "3..5 host@0, 5..7 pe2.op7@1 in pe2");
    assert_eq!(shown(&s, 7..7), "");
    s.mark_written(T);
    assert_eq!(shown(&s, 1..15), "1..15 host@1");
    assert_eq!(s.unwritten(T, 0..16), None);
}

#[test]
fn poison_is_nan_or_marked_and_never_zero() {
    for ty in [ElementType::F16, ElementType::Bf16, ElementType::F32, ElementType::I32, ElementType::U8] {
        let mut s = Store::new(true);
        s.create(T, ty, [2, 3]);
        let b = s.bytes(T);
        assert_eq!(b.len(), 6 * ty.bytes() as usize);
        assert!(b.iter().all(|&b| b == poison_byte(ty) && b != 0));
    }
    assert!(half::f16::from_le_bytes([0xFF; 2]).is_nan());
    assert!(half::bf16::from_le_bytes([0xFF; 2]).is_nan());
    assert!(f32::from_le_bytes([0xFF; 4]).is_nan());
}

#[test]
fn without_data_a_huge_tensor_costs_nothing() {
    let mut s = Store::new(false);
    s.create(T, ElementType::F32, [1 << 30, 1 << 10]);
    s.write_zeros(T);
    assert_eq!(shown(&s, 0..1 << 40), "0..1099511627776 host@0");
    assert!(s.bytes(T).is_empty());
    s.remove(T);
    assert_eq!(shown(&s, 0..4), "");
}

#[test]
fn host_writes_are_seen_in_the_bytes() {
    let mut s = Store::new(true);
    s.create(T, ElementType::U8, [2, 2]);
    s.write_host_at(T, 3, &[7, 8, 9]);
    assert_eq!(s.bytes(T), [0xA5, 0xA5, 0xA5, 7]);
    s.write_host(T, vec![1, 2, 3, 4]);
    assert_eq!(s.bytes(T), [1, 2, 3, 4]);
    s.write_zeros(T);
    assert_eq!(s.bytes(T), [0; 4]);
}

#[test]
fn every_replica_that_stored_in_the_newest_launch_holds_it() {
    let mut s = Store::new(false);
    s.create(T, ElementType::F32, [1, 8]);
    s.mark_written(T);
    assert!(s.is_held(T, 0..8, PeId(5)));
    for pe in [0, 1] {
        note(&mut s, 0..4, 1, (PeId(pe), OpId(0), PeId(pe)));
    }
    assert!(s.is_held(T, 0..8, PeId(0)) && s.is_held(T, 0..8, PeId(1)));
    assert!(!s.is_held(T, 0..8, PeId(2)) && s.is_held(T, 4..8, PeId(2)));
    note(&mut s, 2..3, 2, (PeId(1), OpId(0), PeId(1)));
    assert!(!s.is_held(T, 0..4, PeId(0)) && s.is_held(T, 0..2, PeId(0)));
    s.mark_written(T);
    assert!(s.is_held(T, 0..8, PeId(2)));
}

#[test]
fn a_store_is_held_where_its_transfers_go() {
    // Two shards of 4 columns side by side, two rows of each: PE 1 has the left, PE 2 the right.
    let access = Access { offset: 2, tensor: T, shape: [2, 6], stride: 8, first: 0, len: 2 };
    let part = |home, element, bytes| Transfer {
        element,
        rows: 2,
        home: PeId(home),
        run_bytes: bytes,
        runs: 2,
        ..Transfer::default()
    };
    let pe = PeProgram {
        pe: PeId(7),
        accesses: vec![access],
        transfers: vec![part(1, 2, 8), part(2, 4, 16)],
        ..PeProgram::default()
    };
    let mut s = Store::new(false);
    s.create(T, ElementType::F32, [2, 8]);
    s.note_store(&pe, AccessId(0), OpId(0), 1);
    let held: Vec<String> = s.holders(T).iter().map(|(r, pes)| format!("{r:?} {pes:?}")).collect();
    assert_eq!(held.join(", "), "2..4 [PeId(1)], 4..8 [PeId(2)], 10..12 [PeId(1)], 12..16 [PeId(2)]");
}
