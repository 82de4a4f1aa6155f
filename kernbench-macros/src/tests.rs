//! Expansions as text.
