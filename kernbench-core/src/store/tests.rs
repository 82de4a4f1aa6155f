use super::*;
use crate::ir::{Access, Transfer};

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

#[test]
fn ranges_are_cut_by_version_and_gaps_are_shown() {
    let mut s = Store::new(false);
    s.create(T, ElementType::F16, [4, 4]);
    assert_eq!(shown(&s, 0..16), "0..16 -");
    assert_eq!(s.unwritten(T), Some(0..16));
    s.write_host_at(T, 2, &[0; 8]);
    s.note(T, 5..8, 1, (PeId(2), OpId(7), PeId(2)));
    s.note(T, 8..10, 1, (PeId(2), OpId(7), PeId(2)));
    assert_eq!(shown(&s, 0..16), "0..2 -, 2..5 host@0, 5..10 pe2.op7@1 in pe2, 10..16 -");
    assert_eq!(shown(&s, 3..7), "3..5 host@0, 5..7 pe2.op7@1 in pe2");
    assert_eq!(shown(&s, 7..7), "");
    s.mark_written(T);
    assert_eq!(shown(&s, 1..15), "1..15 host@1");
    assert_eq!(s.unwritten(T), None);
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
    s.write_host(T, &[1, 2, 3, 4]);
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
        s.note(T, 0..4, 1, (PeId(pe), OpId(0), PeId(pe)));
    }
    assert!(s.is_held(T, 0..8, PeId(0)) && s.is_held(T, 0..8, PeId(1)));
    assert!(!s.is_held(T, 0..8, PeId(2)) && s.is_held(T, 4..8, PeId(2)));
    s.note(T, 2..3, 2, (PeId(1), OpId(0), PeId(1)));
    assert!(!s.is_held(T, 0..4, PeId(0)) && s.is_held(T, 0..2, PeId(0)));
    s.mark_written(T);
    assert!(s.is_held(T, 0..8, PeId(2)));
}

#[test]
fn an_access_is_cut_by_the_slices_it_touches() {
    let access = Access { offset: 10, tensor: T, shape: [2, 6], stride: 8, first: 0, len: 2 };
    let transfer =
        |home, run_bytes, runs| Transfer { addr: 0, home: PeId(home), run_bytes, runs, stride_bytes: 32 };
    let parts = |access: &Access, transfers: &[Transfer]| {
        let mut text = vec![];
        for_each_part(access, transfers, 4, PeId(9), |r, pe| text.push(format!("{r:?} pe{pe}")));
        text.join(", ")
    };
    assert_eq!(parts(&access, &[]), "10..16 pe9, 18..24 pe9");
    assert_eq!(
        parts(&access, &[transfer(1, 8, 2), transfer(2, 16, 2)]),
        "10..12 pe1, 12..16 pe2, 18..20 pe1, 20..24 pe2"
    );
    assert_eq!(parts(&access, &[transfer(1, 24, 1), transfer(2, 24, 1)]), "10..16 pe1, 18..24 pe2");
    let dense = Access { stride: 6, ..access };
    assert_eq!(parts(&dense, &[transfer(1, 48, 1)]), "10..22 pe1");
    assert_eq!(
        parts(&dense, &[transfer(1, 16, 1), transfer(2, 32, 1)]),
        "10..14 pe1, 14..16 pe2, 16..22 pe2"
    );
}
