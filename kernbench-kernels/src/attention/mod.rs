//! Attention kernels and the pieces they share.

mod cache;
mod case;
mod general;
mod general_case;
mod gqa;
mod line;
mod long;
mod long_case;
mod mesh;
mod mla;
mod mla_case;
mod on_host;
mod prefill_long;
mod score;
mod short;
mod softmax;
mod spec;
mod tree;

pub use cache::extend_cache;
pub use case::{DECODE_SHORT, PREFILL_SHORT};
pub use general::{attention, attention_scores};
pub use general_case::ATTENTION;
pub use gqa::{Gqa, Group};
pub use line::Line;
pub use long::{Long, gqa_decode_long};
pub use long_case::{DECODE_LONG, PREFILL_LONG};
pub use mesh::{RankAxis, attention_mesh_kv, attention_mesh_mlo};
pub use mla::{Mla, mla_decode};
pub use mla_case::MLA_DECODE;
pub use on_host::{Answer, Arrays, attention_of};
pub use prefill_long::gqa_prefill_long;
pub use score::{Masks, Stage, score};
pub use short::{gqa_decode_short, gqa_prefill_short};
pub use softmax::Softmax;
pub use spec::{Align, Layout, Rows, Spec};
pub use tree::{Node, Tree};
