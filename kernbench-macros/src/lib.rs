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

/// Makes a function a kernel.
///
/// The function becomes a struct of its name, with its arguments as public fields, that implements
/// `Kernel`; `ctx.launch("name", scale { x, by, o })` records it once for each PE.
///
/// In the body `tl::name(..)` is an intrinsic, `scratch_scope!({ .. })` opens a scratch scope, and
/// the value `tl` is the current scope, which `#[device]` functions take first. Everything else is
/// plain Rust that runs at launch.
///
/// ```
/// use kernbench::prelude::*;
///
/// /// Writes `x * by` to `o`, 64 rows at a time.
/// #[kernel]
/// pub fn scale<T: Float>(
///     /// (n, d).
///     x: In<T>,
///     by: f32,
///     /// Laid out like `x`.
///     o: Out<T>,
/// ) {
///     for rows in Block::new(0, x.nrows()).blocks(64) {
///         scratch_scope!(buffers = 2, {
///             let x = tl::load(x.rows(rows));
///             tl::store(o.rows(rows), x * by);
///         });
///     }
/// }
/// ```
///
/// - Arguments are named, of nameable types that are `Clone + Debug + Sync`; references are welcome,
///   and so are generics that occur in an argument. The docs of an argument move to its field.
/// - A kernel returns nothing, and calls no kernel: shared code is a `#[device]` function.
/// - The struct takes its name among types and modules, and a hidden function, which says that a
///   kernel is not called, among functions.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand_kernel(arguments.into(), item.into()).into()
}

/// Makes a function usable from kernels.
///
/// It takes `tl: &Scope` first, after `self` in a method, and is called with the value `tl`; what it
/// makes with `tl::name(..)` lives in the caller's scope. In its result type `'_` is the lifetime of
/// that scope.
///
/// ```
/// use kernbench::prelude::*;
///
/// /// The mean of each row, `[rows, 1]`.
/// #[device]
/// fn mean(tl: &Scope, x: Tile<f32>) -> Tile<'_, f32> {
///     let total = tl::sum(x, Axis::Cols);
///     tl::eval(total * (1.0 / x.ncols() as f32))
/// }
///
/// #[kernel]
/// pub fn center(x: In<f32>, o: Out<f32>) {
///     let x = tl::load(x);
///     tl::store(o, x - mean(tl, x));
/// }
/// ```
///
/// An op carries the whole chain of calls to it: a diagnostic about `total` names its line in `mean`
/// and the line of the call. `?` works where the function returns a `Result` or an `Option`.
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
