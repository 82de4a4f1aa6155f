//! The table of the intrinsics: what `tl::name(..)` may be, and what its documentation says.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::{FnArg, Pat, Signature, parse_quote};

/// One intrinsic as a user of the language sees it.
pub struct Intrinsic {
    pub name: &'static str,
    /// Generics, arguments and result, as Rust source.
    pub signature: &'static str,
    pub doc: &'static str,
    /// The argument that gives its name to a call that has no binding of its own.
    pub named_by: Option<usize>,
}

const fn plain(name: &'static str, signature: &'static str, doc: &'static str) -> Intrinsic {
    Intrinsic { name, signature, doc, named_by: None }
}

const fn named(by: usize, name: &'static str, signature: &'static str, doc: &'static str) -> Intrinsic {
    Intrinsic { name, signature, doc, named_by: Some(by) }
}

const FLOAT_STEP: &str = "<'e, T: Float>(x: impl Operand<'e, T>) -> Expr<'e, T>";
const NUM_STEP: &str = "<'e, T: Num>(x: impl Operand<'e, T>) -> Expr<'e, T>";
const TWO: &str = "<'e, T: Num>(a: impl Operand<'e, T>, b: impl Operand<'e, T>) -> Expr<'e, T>";
const COMPARE: &str = "<'e, T: Num>(a: impl Operand<'e, T>, b: impl Operand<'e, T>) -> Expr<'e, Mask>";
const TWO_MASKS: &str = "<'e>(a: impl Operand<'e, Mask>, b: impl Operand<'e, Mask>) -> Expr<'e, Mask>";
const REDUCE: &str = "<'s, 'e, T: Num>(x: impl Operand<'e, T>, axis: Axis) -> Tile<'s, T>";

/// Every intrinsic, in the order of the language reference.
#[rustfmt::skip]
pub const TABLE: &[Intrinsic] = &[
    plain("load", "<'s, T: Dtype>(view: impl Readable<T>) -> Tile<'s, T>",
        "Reads `view` from HBM into a new tile of its shape.\n\nOne DMA read."),
    plain("read", "<T: Dtype>(view: impl Readable<T>) -> Vec<T>",
        "The elements of `view` in row-major order, as they are when the kernel is launched: block tables, lengths and whatever else decides what the kernel does. The same launch must not write them.\n\nOne DMA read, and a fence: later ops wait for the values."),
    named(0, "store", "<'e, T: Dtype>(view: impl Writable<T>, x: impl Operand<'e, T>)",
        "Writes `x` to `view`, which has the shape of `x`.\n\nOne DMA write; an expression is evaluated by a MATH op first."),
    plain("zeros", "<'s, T: Num>(shape: [usize; 2]) -> Tile<'s, T>",
        "A new tile of zeros; `shape` is `[rows, columns]`.\n\nOne MATH op."),
    plain("full", "<'s, T: Num>(shape: [usize; 2], value: T) -> Tile<'s, T>",
        "A new tile filled with `value`; `shape` is `[rows, columns]`.\n\nOne MATH op."),
    plain("arange", "<'s>(range: impl Into<Block>, axis: Axis) -> Tile<'s, i32>",
        "The indices of `range`, running along `axis`: `[n, 1]` along the rows, `[1, n]` along the columns.\n\nOne MATH op."),
    plain("eval", "<'s, 'e, T: Dtype>(x: impl Operand<'e, T>) -> Tile<'s, T>",
        "Computes the expression `x` into a new tile, rounding once to `T`.\n\nOne MATH op that counts the steps of `x`."),
    named(0, "copy_to", "<'e, T: Dtype>(dst: Tile<'_, T>, x: impl Operand<'e, T>)",
        "Computes `x` into the tile `dst`; `x` is broadcast to its shape and read wholly before `dst` is written.\n\nOne MATH op that counts the steps of `x`."),
    plain("exp", FLOAT_STEP, "e to the power of each element; a step of an expression."),
    plain("log", FLOAT_STEP, "The natural logarithm of each element; a step of an expression."),
    plain("sqrt", FLOAT_STEP, "The square root of each element; a step of an expression."),
    plain("rsqrt", FLOAT_STEP, "One over the square root of each element; a step of an expression."),
    plain("recip", FLOAT_STEP, "One over each element; a step of an expression."),
    plain("tanh", FLOAT_STEP, "The hyperbolic tangent of each element; a step of an expression."),
    plain("abs", NUM_STEP, "The absolute value of each element; a step of an expression."),
    plain("maximum", TWO, "The larger of `a` and `b`, element by element and broadcast; a step of an expression.\n\nThe largest element of a row or column is [`max`]."),
    plain("minimum", TWO, "The smaller of `a` and `b`, element by element and broadcast; a step of an expression.\n\nThe smallest element of a row or column is [`min`]."),
    plain("fma", "<'e, T: Num>(a: impl Operand<'e, T>, b: impl Operand<'e, T>, c: impl Operand<'e, T>) -> Expr<'e, T>",
        "`a * b + c`, element by element and broadcast; a step of an expression."),
    plain("clamp", "<'e, T: Num>(x: impl Operand<'e, T>, low: impl Operand<'e, T>, high: impl Operand<'e, T>) -> Expr<'e, T>",
        "`x` kept between `low` and `high`, element by element and broadcast; a step of an expression."),
    plain("ge", COMPARE, "Where `a >= b`; a step of an expression, used by [`select`]."),
    plain("gt", COMPARE, "Where `a > b`; a step of an expression, used by [`select`]."),
    plain("le", COMPARE, "Where `a <= b`; a step of an expression, used by [`select`]."),
    plain("lt", COMPARE, "Where `a < b`; a step of an expression, used by [`select`]."),
    plain("eq", COMPARE, "Where `a == b`; a step of an expression, used by [`select`]."),
    plain("ne", COMPARE, "Where `a != b`; a step of an expression, used by [`select`]."),
    plain("and", TWO_MASKS, "Where both masks hold; a step of an expression."),
    plain("or", TWO_MASKS, "Where one of the masks holds, or both; a step of an expression."),
    plain("not", "<'e>(m: impl Operand<'e, Mask>) -> Expr<'e, Mask>", "Where the mask does not hold; a step of an expression."),
    plain("select", "<'e, T: Num>(m: impl Operand<'e, Mask>, a: impl Operand<'e, T>, b: impl Operand<'e, T>) -> Expr<'e, T>",
        "`a` where the mask `m` holds and `b` elsewhere, broadcast; a step of an expression.\n\nBoth are computed; a NaN in the one not taken does no harm."),
    plain("sum", REDUCE, "Adds along `axis`: `Axis::Cols` adds along the columns and gives `[rows, 1]`, `Axis::Rows` gives `[1, columns]`.\n\nOne MATH op that counts the steps of `x`."),
    plain("max", REDUCE, "The largest element along `axis`: `Axis::Cols` gives `[rows, 1]`, `Axis::Rows` gives `[1, columns]`.\n\nOne MATH op that counts the steps of `x`. The larger of two operands is [`maximum`]."),
    plain("min", REDUCE, "The smallest element along `axis`: `Axis::Cols` gives `[rows, 1]`, `Axis::Rows` gives `[1, columns]`.\n\nOne MATH op that counts the steps of `x`. The smaller of two operands is [`minimum`]."),
    plain("dot", "<'s, 'a, 'b, T: Dtype>(a: impl Matrix<'a, T>, b: impl Matrix<'b, T>) -> Tile<'s, T::Acc>",
        "The matrix product of `a` `[m, k]` and `b` `[k, n]`: a new tile `[m, n]` of the accumulator type.\n\nOperands are tiles, or transposed tiles: `tl::dot(q, k.t())`. One GEMM op."),
    named(0, "dot_add", "<'a, 'b, T: Dtype>(acc: Tile<'_, T::Acc>, a: impl Matrix<'a, T>, b: impl Matrix<'b, T>)",
        "Adds the matrix product of `a` `[m, k]` and `b` `[k, n]` to the tile `acc` `[m, n]`.\n\nOne GEMM op."),
    plain("composite", "<'s, 'g, V: StoredAs<O>, O: Dtype>(g: Gemm<'g, V, O>) -> Pending<'s, ()>",
        "Begins a composite GEMM, `out = epilogue(a * b)` tile by tile: reading, multiplying, the steps of the epilogue and writing overlap; [`wait`] waits until all is written.\n\nOperands are views or tiles: `tl::composite(Gemm::new(x, w, y).bias(b, Level::OutputTile).relu(Level::OutputTile))`. One composite op."),
    named(1, "send", "<T: Dtype>(to: Dir, x: Tile<'_, T>)",
        "Sends the tile `x` to the neighbour in direction `to`, which takes it with [`recv`].\n\nOne IPCQ op; waits for a free slot."),
    plain("recv", "<'s, T: Dtype>(from: Dir, shape: [usize; 2]) -> Tile<'s, T>",
        "Waits for a tile of `shape` from the neighbour in direction `from`.\n\nOne IPCQ op."),
    plain("recv_async", "<'s, T: Dtype>(from: Dir, shape: [usize; 2]) -> Pending<'s, Tile<'s, T>>",
        "Begins to receive a tile of `shape` from the neighbour in direction `from`; [`wait`] gives the tile.\n\nOne IPCQ op."),
    plain("wait", "<R>(pending: Pending<'_, R>) -> R", "Waits for what `pending` began, and gives its result."),
    plain("fence", "()", "Waits until every op this PE has begun is done."),
    plain("barrier", "(group: Group)", "Waits until every PE of `group` has come to its barrier."),
    plain("sip", "() -> usize", "The number of the SIP this program runs on; known at launch."),
    plain("cube", "() -> usize", "The number of the cube in its SIP this program runs on; known at launch."),
    plain("pe", "() -> usize", "The number of the PE in its cube this program runs on; known at launch."),
    plain("program_id", "(axis: usize) -> usize", "The number of this program along `axis`: 0 is the PE, 1 the cube, 2 the SIP; known at launch."),
    plain("num_programs", "(axis: usize) -> usize", "How many programs run along `axis`: 0 is PEs of a cube, 1 cubes, 2 SIPs; known at launch."),
    plain("gemm_tile", "() -> [usize; 3]", "M, K and N of a tile of the matrix engine; known at launch."),
    plain("slot_size", "() -> usize", "The size of one IPCQ slot in bytes; known at launch."),
    plain("scratch_size", "() -> usize", "The scratch of one PE in bytes; known at launch."),
];

/// The intrinsic called `name`.
pub fn find(name: &str) -> Option<&'static Intrinsic> {
    TABLE.iter().find(|intrinsic| intrinsic.name == name)
}

/// What other languages and libraries call by names that are no intrinsics here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("add", "write `a + b`"),
    ("sub", "write `a - b`"),
    ("mul", "write `a * b`"),
    ("multiply", "write `a * b`"),
    ("div", "write `a / b`"),
    ("neg", "write `-x`"),
    ("matmul", "write `tl::dot(a, b)`"),
    ("gemm", "write `tl::dot(a, b)`"),
    ("ones", "write `tl::full(shape, 1.0)`"),
    ("relu", "write `tl::maximum(x, 0.0)`"),
    ("cast", "write `x.cast::<f32>()`"),
    ("trans", "write `x.t()`"),
    ("transpose", "write `x.t()`"),
    ("reshape", "write `x.reshape(shape)`"),
    ("receive", "write `tl::recv(from, shape)`"),
];

/// What to say about an unknown `name`, and the intrinsic that was meant if it is near enough.
pub fn suggest(name: &str) -> (String, Option<&'static Intrinsic>) {
    if let Some((_, hint)) = ELSEWHERE.iter().find(|(other, _)| *other == name) {
        return ((*hint).to_owned(), None);
    }
    let score = |i: &Intrinsic| {
        let prefix = i.name.starts_with(name) || name.starts_with(i.name);
        strsim::normalized_damerau_levenshtein(name, i.name) + if prefix { 0.2 } else { 0.0 }
    };
    // `max_by` prefers the last of equals: go backwards so that the table's order decides.
    let best = TABLE.iter().rev().max_by(|a, b| score(a).total_cmp(&score(b)));
    match best.filter(|best| score(best) >= 0.6) {
        Some(best) => (format!("did you mean `tl::{}`?", best.name), Some(best)),
        None => ("the documentation of `tl` lists the intrinsics".to_owned(), None),
    }
}

impl Intrinsic {
    /// The signature as a function's.
    fn parse(&self) -> syn::Result<Signature> {
        syn::parse_str(&format!("fn {}{}", self.name, self.signature))
    }

    /// The names of the arguments; their number is the intrinsic's arity.
    pub fn parameters(&self) -> Vec<Ident> {
        let signature = self.parse().map(|s| s.inputs).unwrap_or_default();
        let name = |argument| match argument {
            FnArg::Typed(argument) => match *argument.pat {
                Pat::Ident(pat) => Some(pat.ident),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        };
        signature.into_iter().filter_map(name).collect()
    }

    /// The function of `mod tl` that carries the documentation and may not be called.
    fn twin(&self) -> TokenStream {
        let mut signature = match self.parse() {
            Ok(signature) => signature,
            Err(error) => return error.to_compile_error(),
        };
        // `for<'a>` defers the bound to the call: a plain one that never holds is an error here.
        let bound = parse_quote!(for<'kernel> crate::tl::Here: crate::tl::InsideKernel);
        signature.generics.make_where_clause().predicates.push(bound);
        let lines = self.doc.lines().map(|line| format!(" {line}"));
        quote! {
            #(#[doc = #lines])*
            #[allow(unused_variables, clippy::needless_pass_by_value, clippy::extra_unused_lifetimes)]
            pub #signature { ::core::unreachable!() }
        }
    }
}

/// What `tl_twins!{}` stands for: a documented function for each intrinsic, and the trait whose
/// message a kernel called like a function gets.
pub fn twins() -> TokenStream {
    let twins = TABLE.iter().map(Intrinsic::twin);
    let called = Ident::new("__kernel", Span::call_site());
    quote! {
        #(#twins)*

        #[doc(hidden)]
        pub mod #called {
            /// Holds for no kernel.
            #[diagnostic::on_unimplemented(
                message = "a kernel is launched, not called",
                label = "this is a kernel, not a function",
                note = "on the host launch it: `ctx.launch(\"name\", kernel {{ .. }})`",
                note = "in a kernel, move the code that both need to a `#[device]` function"
            )]
            pub trait Called {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table as the language reference prints it: a name, its arguments.
    #[test]
    fn arguments() {
        let line = |i: &Intrinsic| {
            i.parse().expect(i.name);
            let names: Vec<String> = i.parameters().iter().map(Ident::to_string).collect();
            if let Some(by) = i.named_by {
                assert!(by < names.len(), "{}", i.name);
            }
            format!("{}({})", i.name, names.join(", "))
        };
        let lines: Vec<String> = TABLE.iter().map(line).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        load(view)
        read(view)
        store(view, x)
        zeros(shape)
        full(shape, value)
        arange(range, axis)
        eval(x)
        copy_to(dst, x)
        exp(x)
        log(x)
        sqrt(x)
        rsqrt(x)
        recip(x)
        tanh(x)
        abs(x)
        maximum(a, b)
        minimum(a, b)
        fma(a, b, c)
        clamp(x, low, high)
        ge(a, b)
        gt(a, b)
        le(a, b)
        lt(a, b)
        eq(a, b)
        ne(a, b)
        and(a, b)
        or(a, b)
        not(m)
        select(m, a, b)
        sum(x, axis)
        max(x, axis)
        min(x, axis)
        dot(a, b)
        dot_add(acc, a, b)
        composite(g)
        send(to, x)
        recv(from, shape)
        recv_async(from, shape)
        wait(pending)
        fence()
        barrier(group)
        sip()
        cube()
        pe()
        program_id(axis)
        num_programs(axis)
        gemm_tile()
        slot_size()
        scratch_size()
        ");
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = TABLE.iter().map(|i| i.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn suggestions() {
        let names =
            ["zero", "lod", "arrange", "multiply", "copy", "matmul", "maximun", "program", "frobnicate"];
        let lines = names.map(|name| format!("{name}: {}", suggest(name).0));
        insta::assert_snapshot!(lines.join("\n"), @r"
        zero: did you mean `tl::zeros`?
        lod: did you mean `tl::load`?
        arrange: did you mean `tl::arange`?
        multiply: write `a * b`
        copy: did you mean `tl::copy_to`?
        matmul: write `tl::dot(a, b)`
        maximun: did you mean `tl::maximum`?
        program: did you mean `tl::program_id`?
        frobnicate: the documentation of `tl` lists the intrinsics
        ");
    }

    #[test]
    fn twin() {
        let file = syn::parse2(find("dot").unwrap().twin()).unwrap();
        insta::assert_snapshot!(prettyplease::unparse(&file), @r"
        /// The matrix product of `a` `[m, k]` and `b` `[k, n]`: a new tile `[m, n]` of the accumulator type.
        ///
        /// Operands are tiles, or transposed tiles: `tl::dot(q, k.t())`. One GEMM op.
        #[allow(
            unused_variables,
            clippy::needless_pass_by_value,
            clippy::extra_unused_lifetimes
        )]
        pub fn dot<'s, 'a, 'b, T: Dtype>(
            a: impl Matrix<'a, T>,
            b: impl Matrix<'b, T>,
        ) -> Tile<'s, T::Acc>
        where
            for<'kernel> crate::tl::Here: crate::tl::InsideKernel,
        {
            ::core::unreachable!()
        }
        ");
    }
}
