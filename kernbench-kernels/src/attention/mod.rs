//! Attention kernels and the pieces they share.

mod case;
mod gqa;
mod long;
mod long_case;
mod short;
mod softmax;

pub use case::{DECODE_SHORT, PREFILL_SHORT};
pub use gqa::{Gqa, Group};
pub use long::{Long, gqa_decode_long};
pub use long_case::DECODE_LONG;
pub use short::{gqa_decode_short, gqa_prefill_short};
pub use softmax::Softmax;
