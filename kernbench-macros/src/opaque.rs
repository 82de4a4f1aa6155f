//! Lowers the calls inside macros of which only the tokens are known: `vec![..]`, `assert!(..)`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Expr;
use syn::visit_mut::VisitMut;

use crate::calls::here;
use crate::lower::Lowering;
use crate::parse::Expressions;

impl Lowering<'_> {
    /// The tokens with every intrinsic, scope and `tl` argument among them lowered.
    pub fn opaque(&mut self, tokens: TokenStream) -> TokenStream {
        if !concerns(&tokens) {
            return tokens;
        }
        // Most macros take expressions. In others, only what looks like a call is one.
        match syn::parse2::<Expressions>(tokens.clone()) {
            Ok(expressions) => self.expressions(expressions),
            Err(_) => self.pattern(tokens.into_iter().collect()),
        }
    }

    fn expressions(&mut self, Expressions(all): Expressions) -> TokenStream {
        let mut out = TokenStream::new();
        for (mut expr, separator) in all {
            self.visit_expr_mut(&mut expr);
            expr.to_tokens(&mut out);
            out.extend(separator);
        }
        out
    }

    fn pattern(&mut self, tokens: Vec<TokenTree>) -> TokenStream {
        let mut out = TokenStream::new();
        let mut i = 0;
        while i < tokens.len() {
            let after_colon = i > 0 && is_punct(tokens.get(i - 1), ':');
            let length = if after_colon { None } else { call_length(&tokens[i..]) };
            if let Some(length) = length
                && let Ok(mut expr) = syn::parse2::<Expr>(tokens[i..i + length].iter().cloned().collect())
            {
                self.visit_expr_mut(&mut expr);
                expr.to_tokens(&mut out);
                i += length;
                continue;
            }
            match &tokens[i] {
                TokenTree::Group(group) => {
                    let mut lowered = Group::new(group.delimiter(), self.group(group));
                    lowered.set_span(group.span());
                    out.extend([TokenTree::Group(lowered)]);
                }
                token => out.extend([token.clone()]),
            }
            i += 1;
        }
        out
    }

    /// The inside of a group: `(tl, x)` are arguments.
    fn group(&mut self, group: &Group) -> TokenStream {
        let mut tokens = group.stream().into_iter();
        let (first, second) = (tokens.next(), tokens.next());
        match (first, second) {
            (Some(TokenTree::Ident(tl)), second)
                if group.delimiter() == Delimiter::Parenthesis
                    && tl == "tl"
                    && (second.is_none() || is_punct(second.as_ref(), ',')) =>
            {
                let mut out = here(tl.to_token_stream(), "", tl.span()).into_token_stream();
                out.extend(second);
                out.extend(self.opaque(tokens.collect()));
                out
            }
            _ => self.opaque(group.stream()),
        }
    }
}

/// Whether anything in the tokens is ours.
fn concerns(tokens: &TokenStream) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        TokenTree::Ident(name) => name == "tl" || name == "scratch_scope",
        TokenTree::Group(group) => concerns(&group.stream()),
        _ => false,
    })
}

fn is_punct(token: Option<&TokenTree>, c: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == c)
}

/// How many tokens `tl::name(..)`, `tl::name::<..>(..)`, `tl::name` or `scratch_scope!(..)` at the
/// front takes.
fn call_length(tokens: &[TokenTree]) -> Option<usize> {
    let is = |i: usize, c| is_punct(tokens.get(i), c);
    let parens = |i: usize| matches!(tokens.get(i), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis);
    let TokenTree::Ident(first) = tokens.first()? else { return None };
    if first == "scratch_scope" && is(1, '!') && matches!(tokens.get(2), Some(TokenTree::Group(_))) {
        return Some(3);
    }
    if first != "tl" || !is(1, ':') || !is(2, ':') || !matches!(tokens.get(3), Some(TokenTree::Ident(_))) {
        return None;
    }
    if parens(4) {
        return Some(5);
    }
    if !(is(4, ':') && is(5, ':')) {
        return Some(4);
    }
    let mut depth = 0usize;
    for i in 6..tokens.len() {
        if is(i, '<') {
            depth += 1;
        } else if is(i, '>') {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return Some(if parens(i + 1) { i + 2 } else { i + 1 });
        }
    }
    None
}
