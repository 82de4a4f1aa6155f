//! The mistakes found in one macro call, collected so that all of them are shown at once.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Every mistake found so far.
#[derive(Default)]
pub struct Errors {
    all: Option<syn::Error>,
}

impl Errors {
    /// Adds a mistake found by `syn`.
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.all {
            Some(all) => all.combine(error),
            None => self.all = Some(error),
        }
    }

    /// Adds a mistake at one token.
    pub fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Adds a mistake that covers all of `tokens`.
    pub fn on(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_none()
    }

    /// One `compile_error!` for each mistake.
    pub fn to_compile_errors(&self) -> TokenStream {
        self.all.as_ref().map(syn::Error::to_compile_error).unwrap_or_default()
    }

    /// What stands above the emitted function: after a mistake its mended body must not warn.
    pub fn silence(&self) -> TokenStream {
        if self.is_empty() { TokenStream::new() } else { quote::quote!(#[allow(warnings)]) }
    }
}
