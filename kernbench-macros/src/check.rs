//! What a kernel or a device function may not be, each mistake mended so that it is told once.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::visit_mut::VisitMut;
use syn::{FnArg, GenericParam, Ident, Pat, PatType, Safety, Signature, Type, parse_quote};

use crate::errors::Errors;
use crate::model::{Device, Kernel, is_unit, last_segment, text};

/// Checks what stands in the parentheses of the attribute.
pub fn attribute(name: &str, arguments: &TokenStream, errors: &mut Errors) {
    if !arguments.is_empty() {
        errors.on(arguments, format!("`#[{name}]` takes no arguments: write `#[{name}]`"));
    }
}

/// `async`, `const`, `unsafe`, `extern` and `...`, which neither kind of function has.
fn qualifiers(sig: &mut Signature, what: &str, errors: &mut Errors) {
    if let Some(token) = sig.asyncness.take() {
        errors.on(token, format!("{what} is recorded by an ordinary call: remove `async`"));
    }
    if let Some(token) = sig.constness.take() {
        errors.on(token, format!("{what} is recorded at launch: remove `const`"));
    }
    if let Safety::Unsafe(token) = std::mem::take(&mut sig.safety) {
        errors.on(token, format!("{what} is safe to record: remove `unsafe`"));
    }
    if let Some(abi) = sig.abi.take() {
        errors.on(&abi, format!("{what} is recorded in Rust: remove `{}`", abi.to_token_stream()));
    }
    if let Some(dots) = sig.variadic.take() {
        errors.on(dots.dots, "a variable number of arguments: take a slice, `lens: &[usize]`");
    }
}

/// Checks and mends the head of a kernel.
pub fn kernel(kernel: &mut Kernel, errors: &mut Errors) {
    qualifiers(&mut kernel.sig, "a kernel", errors);
    if let Some(this) = &kernel.receiver {
        let message =
            "a kernel is a free function: move it out of the `impl` and take what it needs as arguments";
        errors.on(this.self_token, message);
    }
    if kernel.body.is_none() {
        errors.at(
            kernel.sig.ident.span(),
            format!("a kernel has a body: write `fn {}(..) {{ .. }}`", kernel.sig.ident),
        );
    }
    if !is_unit(&kernel.sig.output) {
        let message = "a kernel returns nothing: take an `Out` argument and `tl::store` the result to it";
        errors.on(&kernel.sig.output, message);
    }
    kernel.arguments.retain(|argument| {
        let scope = argument.name == "tl";
        if scope {
            let message = "a kernel has `tl` without declaring it: remove this argument";
            errors.on(argument.pat.to_token_stream(), message);
        }
        !scope
    });
    for argument in &mut kernel.arguments {
        let plain = matches!(&argument.pat, Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none());
        if !plain {
            let message = format!(
                "an argument of a kernel is a field of its struct: give it a name, and write `let {} = name;` in the body",
                compact(&argument.pat)
            );
            errors.on(&argument.pat, message);
        }
        let mut impls = ImplTrait { params: Vec::new(), name: &argument.name, errors };
        impls.visit_type_mut(&mut argument.ty);
        let params = impls.params;
        kernel.sig.generics.params.extend(params);
    }
}

/// Tokens as text, spaced as people write them.
fn compact(tokens: &impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string();
    for (from, to) in
        [(" ,", ","), ("( ", "("), (" )", ")"), (" (", "("), (" <", "<"), ("< ", "<"), (" >", ">")]
    {
        text = text.replace(from, to);
    }
    text.replace(" :: ", "::").replace("& ", "&").replace(" ..", "..")
}

/// Replaces `impl Trait` by a type parameter.
struct ImplTrait<'a> {
    params: Vec<GenericParam>,
    name: &'a Ident,
    errors: &'a mut Errors,
}

impl VisitMut for ImplTrait<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        let Type::ImplTrait(found) = ty else { return syn::visit_mut::visit_type_mut(self, ty) };
        let bounds = &found.bounds;
        let message = format!(
            "an argument of a kernel is a field of its struct, which names its type: write `fn k<A: {}>(.., {}: A)`",
            compact(bounds),
            text(self.name),
        );
        self.errors.on(&*found, message);
        let param = format_ident!("Impl{}{}", self.params.len(), self.name);
        self.params.push(parse_quote!(#param: #bounds));
        *ty = parse_quote!(#param);
    }
}

/// The type and lifetime parameters that no argument of the kernel mentions, told as a mistake.
pub fn unused_parameters(kernel: &Kernel, errors: &mut Errors) -> Vec<GenericParam> {
    let mut names = Vec::new();
    kernel.arguments.iter().for_each(|a| identifiers(a.ty.to_token_stream(), &mut names));
    let mut unused = Vec::new();
    for param in &kernel.sig.generics.params {
        let (name, shown) = match param {
            GenericParam::Type(p) => (&p.ident, p.ident.to_string()),
            GenericParam::Lifetime(p) => (&p.lifetime.ident, p.lifetime.to_string()),
            GenericParam::Const(_) => continue,
        };
        if !names.contains(name) {
            let message = format!(
                "a launch could not say what `{shown}` is: mention it in an argument, as in `q: In<T>`, or remove it"
            );
            errors.on(param, message);
            unused.push(param.clone());
        }
    }
    unused
}

fn identifiers(tokens: TokenStream, names: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => names.push(name),
            TokenTree::Group(group) => identifiers(group.stream(), names),
            _ => {}
        }
    }
}

/// Checks and mends the head of a device function; without a usable `tl` its body is not emitted.
pub fn device(device: &mut Device, errors: &mut Errors) {
    qualifiers(&mut device.sig, "a device function", errors);
    let mut inputs = device.sig.inputs.iter_mut().filter_map(|input| match input {
        FnArg::Typed(input) => Some(input),
        FnArg::Receiver(_) => None,
    });
    let first = inputs.next();
    if device.tl.is_some() {
        if let Some(first) = first.filter(|first| !is_scope(&first.ty)) {
            errors.on(&first.ty, "`tl` is a shared reference: write `tl: &Scope`");
            first.ty = parse_quote!(&tl::__rt::Scope);
        }
    } else if let Some(first) = first.filter(|first| is_scope(&first.ty)) {
        errors
            .on(&first.pat, "the scratch scope of a `#[device]` function is called `tl`: write `tl: &Scope`");
    } else if let Some(later) = inputs.find(|input| is_named_tl(input)) {
        errors.on(later, "the scratch scope comes first: move `tl: &Scope` to the front");
    } else {
        let name = &device.sig.ident;
        let this =
            device.sig.receiver().map(|this| format!("{}, ", this.to_token_stream()).replace("& ", "&"));
        let this = this.unwrap_or_default();
        let message = "a `#[device]` function takes the scratch scope first";
        errors.at(name.span(), format!("{message}: write `fn {name}({this}tl: &Scope, ..)`"));
    }
}

fn is_named_tl(input: &PatType) -> bool {
    matches!(&*input.pat, Pat::Ident(pat) if pat.ident == "tl")
}

fn is_scope(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => {
            reference.mutability.is_none()
                && last_segment(&reference.elem).is_some_and(|name| name == "Scope")
        }
        Type::Group(group) => is_scope(&group.elem),
        _ => false,
    }
}
