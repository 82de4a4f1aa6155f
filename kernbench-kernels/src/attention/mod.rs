//! Attention kernels and the pieces they share.

mod case;
mod gqa;
mod short;
mod softmax;

pub use case::{DECODE_SHORT, PREFILL_SHORT};
pub use gqa::{Gqa, Group};
pub use short::{gqa_decode_short, gqa_prefill_short};
pub use softmax::Softmax;
