//! The macros of kernbench: `#[kernel]`, `#[device]`, and the table of the `tl` intrinsics.
//!
//! One call goes through `parse` (syntax), `model` (what it is), `check` (what it may not be),
//! `lower` with `calls`, `names` and `opaque` (its body) and `expand` (what it becomes).
//! `intrinsics` is the one table of what `tl::name(..)` may be; `errors` collects the mistakes.
//! A macro never stops at a mistake: the mended item is emitted beside the messages.

mod calls;
mod check;
mod errors;
mod expand;
mod intrinsics;
mod lower;
mod model;
mod names;
mod opaque;
mod parse;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

/// Makes a function a kernel: a struct of its name with the arguments as public fields, to launch.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand_kernel(arguments.into(), item.into()).into()
}

/// Makes a function usable from kernels: it takes `tl: &Scope` first, and intrinsics work in it.
#[proc_macro_attribute]
pub fn device(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand_device(arguments.into(), item.into()).into()
}

/// The functions of `mod tl` that carry the documentation of the intrinsics; for the core only.
#[doc(hidden)]
#[proc_macro]
pub fn tl_twins(_: TokenStream) -> TokenStream {
    intrinsics::twins().into()
}

fn expand_kernel(arguments: Tokens, item: Tokens) -> Tokens {
    let mut errors = errors::Errors::default();
    check::attribute("kernel", &arguments, &mut errors);
    let function = match parse::function("kernel", item) {
        Ok(function) => function,
        Err((error, item)) => return refused(error, item, errors),
    };
    let mut kernel = model::Kernel::new(function);
    check::kernel(&mut kernel, &mut errors);
    let unused = check::unused_parameters(&kernel, &mut errors);
    let mut lowering = lower::Lowering::kernel(model::is_unit(&kernel.sig.output), &mut errors);
    lowering.patterns(kernel.arguments.iter_mut().map(|argument| &mut argument.pat));
    if let Some(body) = &mut kernel.body {
        lowering.body(body);
    }
    expand::kernel(kernel, &unused, &errors)
}

fn expand_device(arguments: Tokens, item: Tokens) -> Tokens {
    let mut errors = errors::Errors::default();
    check::attribute("device", &arguments, &mut errors);
    let function = match parse::function("device", item) {
        Ok(function) => function,
        Err((error, item)) => return refused(error, item, errors),
    };
    let mut device = model::Device::new(function);
    check::device(&mut device, &mut errors);
    let mut lowering = lower::Lowering::device(device.result(), &mut errors);
    lowering.patterns(device.other_patterns());
    if let Some(body) = &mut device.body {
        lowering.body(body);
    }
    expand::device(device, &errors)
}

/// What is no function is emitted as it is.
fn refused(error: syn::Error, item: Tokens, mut errors: errors::Errors) -> Tokens {
    errors.push(error);
    let messages = errors.to_compile_errors();
    quote::quote!(#item #messages)
}
