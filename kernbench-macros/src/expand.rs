//! What a kernel and a device function become.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::visit_mut::VisitMut;
use syn::{FnArg, GenericParam, Lifetime, LifetimeParam, ReturnType, Signature, Stmt, Type, parse_quote};

use crate::errors::Errors;
use crate::model::{Device, Elided, Kernel, fresh_lifetime, text};

/// The struct of a kernel, its `impl Kernel`, and the function that records it.
///
/// `unused` are generic parameters that no field mentions, which is a mistake told already.
pub fn kernel(mut kernel: Kernel, unused: &[GenericParam], errors: &Errors) -> TokenStream {
    let messages = errors.to_compile_errors();
    let silence = errors.silence();
    if kernel.receiver.is_some() {
        let Kernel { attrs, vis, receiver, sig, .. } = kernel;
        let Signature { ident, generics, output, .. } = sig;
        return quote!(#(#attrs)* #silence #vis fn #ident #generics(#receiver) #output { ::core::unimplemented!() } #messages);
    }
    name_lifetimes(&mut kernel);
    let Kernel { attrs, fn_attrs, vis, sig, arguments, body, .. } = &kernel;
    let Signature { ident: name, generics, .. } = sig;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let bounds = generics.where_clause.iter().flat_map(|clause| &clause.predicates);
    let tl = Ident::new("tl", Span::call_site());
    let text = text(name);
    let body = body.as_ref().map_or_else(|| quote!({}), ToTokens::to_token_stream);

    let fields = arguments.iter().map(|a| {
        let (docs, name, ty) = (&a.docs, &a.name, &a.ty);
        let undocumented = docs.is_empty().then(|| quote!(#[allow(missing_docs)]));
        quote!(#undocumented #(#docs)* pub #name: #ty)
    });
    let unused = unused.iter().map(|param| match param {
        GenericParam::Lifetime(p) => {
            let lifetime = &p.lifetime;
            quote!(&#lifetime ())
        }
        GenericParam::Type(p) => p.ident.to_token_stream(),
        GenericParam::Const(_) => quote!(()),
    });
    let unused: Vec<TokenStream> = unused.collect();
    let unused = (!unused.is_empty())
        .then(|| quote!(#[doc(hidden)] pub __unused: ::core::marker::PhantomData<fn(#(#unused),*)>));
    let fields = fields.chain(unused);

    let params = arguments.iter().map(|a| {
        let (attrs, pat, ty) = (&a.attrs, &a.pat, &a.ty);
        quote!(#(#attrs)* #pat: #ty)
    });
    let values = arguments.iter().map(|a| {
        let name = &a.name;
        quote!(::core::clone::Clone::clone(&self.#name))
    });
    let tensors = arguments.iter().filter(|a| a.is_tensor()).map(|a| {
        let name = &a.name;
        quote!(self.#name.tensor())
    });
    let mut tensors = quote!(::std::vec![#(#tensors),*]);
    let optional: Vec<&Ident> =
        arguments.iter().filter(|a| a.is_optional_tensor()).map(|a| &a.name).collect();
    if !optional.is_empty() {
        tensors = quote! {
            let mut tensors = #tensors;
            #(tensors.extend(self.#optional.map(|view| view.tensor()));)*
            tensors
        };
    }
    // A result is a mistake told already: what it borrows from is no other one.
    let (scope, output) = match in_scope(&sig.output, &parse_quote!('__scope)) {
        Some(output) => (quote!('__scope), output),
        None => (TokenStream::new(), sig.output.to_token_stream()),
    };
    let types = arguments.iter().map(|a| &a.ty);

    quote! {
        #(#attrs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Debug)]
        #vis struct #name #generics #where_clause { #(#fields,)* }

        impl #impl_generics #name #type_generics #where_clause {
            #[doc(hidden)]
            #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value, clippy::used_underscore_items)]
            #(#fn_attrs)*
            #silence
            fn __record<#scope>(#[allow(unused_variables)] #tl: &#scope #tl::__rt::Scope, #(#params),*) #output #body
        }

        impl #impl_generics #tl::__rt::Kernel for #name #type_generics #where_clause {
            const NAME: &'static str = #text;

            #silence
            fn record(&self, #tl: &#tl::__rt::Scope) {
                Self::__record(#tl, #(#values),*);
            }

            fn tensors(&self) -> ::std::vec::Vec<#tl::__rt::TensorId> {
                #tensors
            }
        }

        // In the value namespace, so that a kernel called like a function says what to do instead.
        #[doc(hidden)]
        #[allow(dead_code, private_interfaces, clippy::all, clippy::pedantic)]
        #vis fn #name #generics(#(_: #types),*)
        where
            #(#bounds,)*
            for<'__kernel> #tl::Here: #tl::__kernel::Called,
        {
        }

        const _: () = #tl::__rt::USED;
        #messages
    }
}

/// Gives the references among the arguments of a kernel, which are fields, a lifetime.
fn name_lifetimes(kernel: &mut Kernel) {
    let lifetime = fresh_lifetime(&kernel.sig.generics, "args");
    let mut elided = Elided { lifetime: &lifetime, references: true, paths: false, used: false };
    kernel.arguments.iter_mut().for_each(|argument| elided.visit_type_mut(&mut argument.ty));
    if elided.used {
        declare(&mut kernel.sig, &lifetime);
    }
}

fn declare(sig: &mut Signature, lifetime: &Lifetime) {
    sig.generics.params.insert(0, GenericParam::Lifetime(LifetimeParam::new(lifetime.clone())));
}

/// The result type with `lifetime` where it says `'_`, if it does.
fn in_scope(output: &ReturnType, lifetime: &Lifetime) -> Option<TokenStream> {
    let ReturnType::Type(arrow, ty) = output else { return None };
    let mut ty = ty.clone();
    let mut elided = Elided { lifetime, references: false, paths: true, used: false };
    elided.visit_type_mut(&mut ty);
    elided.used.then(|| quote!(#arrow #ty))
}

/// The device function with its frame, or without its body where it has no usable `tl`.
pub fn device(device: Device, errors: &Errors) -> TokenStream {
    let Device { attrs, vis, mut sig, body, tl } = device;
    let (messages, silence) = (errors.to_compile_errors(), errors.silence());
    let body = match (body, &tl) {
        (None, _) => quote!(;),
        (Some(_), None) => quote!({ ::core::unimplemented!() }),
        (Some(mut body), Some(tl)) => {
            let frame = Ident::new("_frame", Span::mixed_site());
            // Items stay in front, where lints want them.
            let items = body.stmts.iter().take_while(|stmt| matches!(stmt, Stmt::Item(_))).count();
            body.stmts.insert(items, parse_quote!(let #frame = #tl.frame();));
            body.into_token_stream()
        }
    };
    if let Some(tl) = &tl {
        scope_lifetime(&mut sig, tl);
    }
    quote! {
        #(#attrs)*
        #[allow(clippy::needless_lifetimes)]
        #silence
        #vis #sig #body
        #messages
    }
}

/// In the result `'_` is the lifetime of the scope `tl`.
fn scope_lifetime(sig: &mut Signature, tl: &Ident) {
    let fresh = fresh_lifetime(&sig.generics, "scope");
    let scope = sig.inputs.iter_mut().find_map(|input| match input {
        FnArg::Typed(input) if matches!(&*input.pat, syn::Pat::Ident(p) if p.ident == *tl) => {
            Some(&mut *input.ty)
        }
        _ => None,
    });
    let Some(Type::Reference(scope)) = scope else { return };
    let named = scope.lifetime.clone().filter(|lifetime| lifetime.ident != "_");
    let lifetime = named.clone().unwrap_or(fresh);
    let Some(output) = in_scope(&sig.output, &lifetime) else { return };
    if named.is_none() {
        scope.lifetime = Some(lifetime.clone());
        declare(sig, &lifetime);
    }
    if let Ok(output) = syn::parse2(output) {
        sig.output = output;
    }
}
