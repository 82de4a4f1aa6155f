//! Lowers the calls in a body: intrinsics, helpers that take `tl`, and what may not be called.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprPath, PathArguments, PathSegment};

use crate::intrinsics::{self, Intrinsic};
use crate::lower::{Lowering, source, start};
use crate::names::{self, Binding};

/// Whether `expr` is the value `tl`.
pub fn is_tl(expr: &Expr) -> bool {
    match expr {
        Expr::Path(path) => path.qself.is_none() && path.path.is_ident("tl"),
        Expr::Paren(paren) => is_tl(&paren.expr),
        Expr::Group(group) => is_tl(&group.expr),
        _ => false,
    }
}

/// The two names of the path `tl::name`.
pub fn intrinsic_path(expr: &Expr) -> Option<(&Ident, &PathSegment)> {
    match expr {
        Expr::Path(ExprPath { qself: None, path, .. }) if path.leading_colon.is_none() => {
            let mut segments = path.segments.iter();
            match (segments.next(), segments.next(), segments.next()) {
                (Some(tl), Some(name), None) if tl.ident == "tl" => Some((&tl.ident, name)),
                _ => None,
            }
        }
        Expr::Group(group) => intrinsic_path(&group.expr),
        _ => None,
    }
}

const NO_KERNEL_CALLS: &str =
    "a kernel does not call a kernel: move the code that both need to a `#[device]` function";

impl Lowering<'_> {
    /// The intrinsic called `name`. A name that is none is told, and the nearest stands in for it.
    fn known(&mut self, name: &Ident) -> Option<&'static Intrinsic> {
        let text = crate::model::text(name);
        if let Some(intrinsic) = intrinsics::find(&text) {
            return Some(intrinsic);
        }
        let (hint, meant) = intrinsics::suggest(&text);
        self.errors.at(name.span(), format!("unknown intrinsic `tl::{text}`: {hint}"));
        meant
    }

    /// `tl::name::<..>(args)` becomes `tl.at(SOURCE).name::<..>(args)`.
    pub fn intrinsic(&mut self, expr: &mut Expr) {
        let Expr::Call(call) = expr else { return };
        let Some((tl, segment)) = intrinsic_path(&call.func) else { return };
        let (tl, segment) = (tl.clone(), segment.clone());
        let Some(intrinsic) = self.known(&segment.ident) else {
            call.args.iter_mut().for_each(|argument| self.part(argument));
            *expr = Expr::Verbatim(quote!(::core::unimplemented!()));
            return;
        };
        let destination = intrinsic.named_by.and_then(|by| call.args.get(by)).map(Binding::destination);
        let binding = match destination {
            Some(named @ Binding::Whole(_)) => named,
            _ => self.binding.clone(),
        };
        let source = source(&binding.name(intrinsic.name), tl.span());
        call.args.iter_mut().for_each(|argument| self.expr(binding.part(), argument));
        let name = Ident::new(intrinsic.name, segment.ident.span());
        let turbofish = turbofish(&segment.arguments);
        let (attrs, args) = (&call.attrs, &call.args);
        let at = quote_spanned!(tl.span()=> #tl.at(#source).);
        let mut tokens = quote!(#(#attrs)* #at #name #turbofish);
        call.paren_token.surround(&mut tokens, |inner| args.to_tokens(inner));
        *expr = Expr::Verbatim(tokens);
    }

    /// Any other call: a `tl` among its arguments marks a helper.
    pub fn call(&mut self, expr: &mut Expr) {
        let Expr::Call(call) = expr else { return };
        let callee = names::callee(&call.func);
        if callee.as_deref() == Some("record") && call.args.len() == 2 && is_tl(&call.args[1]) {
            self.kernel_call(start(&call.func), call.args[0].to_token_stream(), expr);
            return;
        }
        let at = start(&call.func);
        self.part(&mut call.func);
        self.arguments(&mut call.args, callee, at);
    }

    /// A method call; the receiver has the name of the result.
    pub fn method_call(&mut self, expr: &mut Expr) {
        let Expr::MethodCall(call) = expr else { return };
        if call.method == "record" && call.args.len() == 1 && is_tl(&call.args[0]) {
            self.kernel_call(call.method.span(), call.receiver.to_token_stream(), expr);
            return;
        }
        self.visit_receiver(&mut call.receiver);
        self.arguments(&mut call.args, Some(crate::model::text(&call.method)), call.method.span());
    }

    fn visit_receiver(&mut self, receiver: &mut Expr) {
        self.expr(self.binding.clone(), receiver);
    }

    fn arguments(
        &mut self,
        args: &mut syn::punctuated::Punctuated<Expr, syn::Token![,]>,
        callee: Option<String>,
        at: Span,
    ) {
        let helper = args.iter().any(is_tl);
        let callee = callee.unwrap_or_default();
        // What an unnamed helper is given goes by the helper's name.
        let part = match &self.binding {
            Binding::None if helper && !callee.is_empty() => Binding::Part(callee.clone()),
            binding => binding.part(),
        };
        for argument in args {
            if is_tl(argument) {
                *argument = here(argument.to_token_stream(), &self.binding.name(&callee), at);
            } else {
                self.expr(part.clone(), argument);
            }
        }
    }

    fn kernel_call(&mut self, at: Span, kernel: TokenStream, expr: &mut Expr) {
        self.errors.at(at, NO_KERNEL_CALLS);
        *expr = Expr::Verbatim(quote!({ let _ = &#kernel; }));
    }

    /// A path that is not called: an intrinsic is not a value.
    pub fn path(&mut self, expr: &mut Expr) {
        let Some((tl, segment)) = intrinsic_path(expr) else { return };
        let (tl, segment) = (tl.clone(), segment.clone());
        let Some(intrinsic) = self.known(&segment.ident) else {
            *expr = Expr::Verbatim(quote!(::core::unimplemented!()));
            return;
        };
        let parameters = intrinsic.parameters();
        let turbofish = turbofish(&segment.arguments);
        if segment.ident == intrinsic.name {
            let list = parameters.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ");
            let message =
                format!("an intrinsic is not a value: write `|{list}| tl::{}({list})`", intrinsic.name);
            self.errors.on(&*expr, message);
        }
        let source = source(&self.binding.name(intrinsic.name), tl.span());
        let name = &segment.ident;
        let name = Ident::new(intrinsic.name, name.span());
        *expr = Expr::Verbatim(quote!(|#(#parameters),*| #tl.at(#source).#name #turbofish(#(#parameters),*)));
    }

    /// `kernbench::tl::load` would be told to stand outside a kernel: take it for `tl::load`.
    pub fn shorten(&mut self, expr: &mut Expr) {
        let path = match expr {
            Expr::Call(call) => &mut *call.func,
            expr => expr,
        };
        let Expr::Path(ExprPath { path, .. }) = path else { return };
        let names: Vec<&Ident> = path.segments.iter().map(|segment| &segment.ident).collect();
        if let [_, .., tl, name] = names[..]
            && tl == "tl"
            && intrinsics::find(&name.to_string()).is_some()
        {
            self.errors.on(&*path, format!("in a kernel an intrinsic is written `tl::{name}`"));
            let front = path.segments.len() - 2;
            path.segments = std::mem::take(&mut path.segments).into_iter().skip(front).collect();
            path.leading_colon = None;
        }
    }
}

/// `tl` as a helper's argument marks where the helper is called.
pub fn here(tl: TokenStream, name: &str, at: Span) -> Expr {
    let source = source(name, at);
    let span = tl.clone().into_iter().next().map_or(at, |token| token.span());
    Expr::Verbatim(quote_spanned!(span=> #tl.here(#source)))
}

fn turbofish(arguments: &PathArguments) -> TokenStream {
    match arguments {
        PathArguments::AngleBracketed(list) => {
            let mut list = list.clone();
            list.colon2_token.get_or_insert_with(|| syn::Token![::](list.lt_token.span));
            list.to_token_stream()
        }
        _ => TokenStream::new(),
    }
}
