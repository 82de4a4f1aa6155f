//! The pages of `docs/diagnostics`, in the binary. A test compares the list with the folder.

macro_rules! pages {
    ($($code:literal)*) => {
        &[$(($code, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/diagnostics/", $code, ".md")))),*]
    };
}

/// Every code with its page, in order.
#[rustfmt::skip]
pub(super) const PAGES: &[(&str, &str)] = pages![
    "KB0115"
    "KB0301"
    "KB0302"
    "KB0303"
    "KB0304"
    "KB0305"
    "KB0306"
    "KB0307"
    "KB0308"
    "KB0309"
    "KB0310"
    "KB0311"
    "KB0312"
    "KB0313"
    "KB0314"
    "KB0315"
    "KB0316"
    "KB0401"
    "KB0402"
    "KB0403"
    "KB0404"
    "KB0501"
    "KB0502"
    "KB0503"
    "KB0504"
    "KB0612"
    "KB0613"
    "KB0614"
    "KB0615"
    "KB0616"
    "KB0617"
    "KB0618"
    "KB0619"
    "KB0621"
    "KB0622"
    "KB0623"
    "KB0624"
    "KB0630"
    "KB0631"
    "KB0632"
    "KB0633"
    "KB0634"
    "KB0640"
    "KB0641"
    "KB0642"
    "KB0643"
    "KB0645"
];
