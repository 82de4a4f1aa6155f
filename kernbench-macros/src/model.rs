//! A kernel and a device function as the macro understands them, mistakes included.

use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Block, FnArg, GenericArgument, Generics, Ident, Lifetime, ParenthesizedGenericArguments, Pat,
    PatType, PathArguments, Receiver, ReturnType, Signature, Type, TypeFnPtr, TypeReference, Visibility,
};

use crate::names::Binding;
use crate::parse::Function;

/// A function under `#[kernel]`.
pub struct Kernel {
    /// Attributes of the struct.
    pub attrs: Vec<Attribute>,
    /// Attributes of the function that records.
    pub fn_attrs: Vec<Attribute>,
    pub vis: Visibility,
    /// Its inputs have moved to `receiver` and `arguments`.
    pub sig: Signature,
    pub receiver: Option<Receiver>,
    pub arguments: Vec<Argument>,
    pub body: Option<Block>,
}

/// One argument of a kernel, a field of its struct.
pub struct Argument {
    pub docs: Vec<Attribute>,
    pub attrs: Vec<Attribute>,
    /// The field's name; made up where the pattern is no name.
    pub name: Ident,
    pub pat: Pat,
    pub ty: Type,
}

/// A function under `#[device]`; in a trait it may have no body.
pub struct Device {
    pub attrs: Vec<Attribute>,
    pub vis: Visibility,
    pub sig: Signature,
    pub body: Option<Block>,
    /// The name of its first argument: `tl`, with the user's span.
    pub tl: Option<Ident>,
}

/// Attributes about the code of a function, and not about the struct it becomes.
const FN_ATTRS: &[&str] = &["expect", "inline", "cold", "track_caller"];
/// Lint levels concern both.
const LINTS: &[&str] = &["allow", "warn", "deny", "forbid"];

impl Kernel {
    pub fn new(function: Function) -> Self {
        let Function { attrs, vis, mut sig, body } = function;
        let is = |a: &Attribute, names: &[&str]| names.iter().any(|name| a.path().is_ident(name));
        let fn_attrs = attrs.iter().filter(|a| is(a, FN_ATTRS) || is(a, LINTS)).cloned().collect();
        let attrs = attrs.into_iter().filter(|a| !is(a, FN_ATTRS)).collect();
        let (mut receiver, mut arguments) = (None, Vec::new());
        for (i, input) in std::mem::take(&mut sig.inputs).into_iter().enumerate() {
            match input {
                FnArg::Receiver(this) => receiver = Some(this),
                FnArg::Typed(input) => arguments.push(Argument::new(input, i)),
            }
        }
        Kernel { attrs, fn_attrs, vis, sig, receiver, arguments, body }
    }
}

impl Argument {
    fn new(input: PatType, position: usize) -> Self {
        let (docs, attrs) = input.attrs.into_iter().partition(|a| a.path().is_ident("doc"));
        let name = match &*input.pat {
            Pat::Ident(pat) => pat.ident.clone(),
            other => Ident::new(&format!("arg{position}"), syn::spanned::Spanned::span(other)),
        };
        Argument { docs, attrs, name, pat: *input.pat, ty: *input.ty }
    }

    /// Whether the argument is a view of a tensor: `In`, `Out` or `InOut`.
    pub fn is_tensor(&self) -> bool {
        is_view(&self.ty)
    }

    /// Whether the argument is a view of a tensor that may be left out: `Option<In<T>>`.
    pub fn is_optional_tensor(&self) -> bool {
        let Type::Path(path) = &self.ty else { return false };
        let Some(segment) = path.path.segments.last().filter(|segment| segment.ident == "Option") else {
            return false;
        };
        let PathArguments::AngleBracketed(inner) = &segment.arguments else { return false };
        inner.args.iter().any(|inner| matches!(inner, GenericArgument::Type(ty) if is_view(ty)))
    }
}

fn is_view(ty: &Type) -> bool {
    last_segment(ty).is_some_and(|name| name == "In" || name == "Out" || name == "InOut")
}

impl Device {
    pub fn new(function: Function) -> Self {
        let Function { attrs, vis, sig, body } = function;
        let tl = sig.inputs.iter().find_map(|input| match input {
            FnArg::Typed(input) => Some(input),
            FnArg::Receiver(_) => None,
        });
        let tl = tl.and_then(|input| match &*input.pat {
            Pat::Ident(pat) if pat.ident == "tl" => Some(pat.ident.clone()),
            _ => None,
        });
        Device { attrs, vis, sig, body, tl }
    }

    /// What a value that the function returns is called: the function's name.
    pub fn result(&self) -> Binding {
        if is_unit(&self.sig.output) { Binding::None } else { Binding::Whole(text(&self.sig.ident)) }
    }

    /// The patterns of the arguments but the scope.
    pub fn other_patterns(&mut self) -> impl Iterator<Item = &mut Pat> {
        let skip = usize::from(self.tl.is_some());
        let typed = self.sig.inputs.iter_mut().filter_map(|input| match input {
            FnArg::Typed(input) => Some(&mut *input.pat),
            FnArg::Receiver(_) => None,
        });
        // Without a scope in front, one further back is told already.
        typed.skip(skip).filter(move |pat| skip > 0 || !matches!(pat, Pat::Ident(pat) if pat.ident == "tl"))
    }
}

/// The last name of a path type.
pub fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

/// The name as text, without `r#`.
pub fn text(name: &Ident) -> String {
    name.unraw().to_string()
}

/// Whether a function of this result returns nothing.
pub fn is_unit(output: &ReturnType) -> bool {
    match output {
        ReturnType::Default => true,
        ReturnType::Type(_, ty) => matches!(&**ty, Type::Tuple(tuple) if tuple.elems.is_empty()),
    }
}

/// A lifetime of this name, or of the first name after it that the generics do not have.
pub fn fresh_lifetime(generics: &Generics, name: &str) -> Lifetime {
    let mut name = name.to_owned();
    while generics.lifetimes().any(|l| l.lifetime.ident == name) {
        name.push('_');
    }
    Lifetime::new(&format!("'{name}"), proc_macro2::Span::call_site())
}

/// Writes a lifetime where the user wrote `'_`, and where asked also where they wrote none.
pub struct Elided<'a> {
    pub lifetime: &'a Lifetime,
    /// In `&T`.
    pub references: bool,
    /// In `Tile<T>` and its like.
    pub paths: bool,
    /// Whether anything was written.
    pub used: bool,
}

impl Elided<'_> {
    fn at(&mut self, span: proc_macro2::Span) -> Lifetime {
        self.used = true;
        let mut lifetime = self.lifetime.clone();
        lifetime.set_span(span);
        lifetime
    }
}

impl VisitMut for Elided<'_> {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.at(lifetime.span());
        }
    }

    fn visit_type_reference_mut(&mut self, ty: &mut TypeReference) {
        if ty.lifetime.is_none() && self.references {
            ty.lifetime = Some(self.at(ty.and_token.span));
        }
        visit_mut::visit_type_reference_mut(self, ty);
    }

    fn visit_path_segment_mut(&mut self, segment: &mut syn::PathSegment) {
        let scoped = ["Tile", "Expr", "Transposed", "Pending"].iter().any(|name| segment.ident == name);
        if let syn::PathArguments::AngleBracketed(list) = &mut segment.arguments
            && self.paths
            && scoped
            && !list.args.iter().any(|a| matches!(a, syn::GenericArgument::Lifetime(_)))
        {
            list.args.insert(0, syn::GenericArgument::Lifetime(self.at(list.lt_token.span)));
        }
        visit_mut::visit_path_segment_mut(self, segment);
    }

    // In these an elided lifetime means another one.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut TypeFnPtr) {}
    fn visit_parenthesized_generic_arguments_mut(&mut self, _: &mut ParenthesizedGenericArguments) {}
}
