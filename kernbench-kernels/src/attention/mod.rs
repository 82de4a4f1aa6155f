//! Attention kernels and the pieces they share.

mod cache;
mod case;
mod general;
mod gqa;
mod long;
mod long_case;
mod on_host;
mod score;
mod short;
mod softmax;
mod spec;

pub use cache::extend_cache;
pub use case::{DECODE_SHORT, PREFILL_SHORT};
pub use general::{attention, attention_scores};
pub use gqa::{Gqa, Group};
pub use long::{Long, gqa_decode_long};
pub use long_case::DECODE_LONG;
pub use on_host::{Answer, Arrays, attention_of};
pub use score::{Masks, Stage, score};
pub use short::{gqa_decode_short, gqa_prefill_short};
pub use softmax::Softmax;
pub use spec::{Align, Layout, Rows, Spec};
