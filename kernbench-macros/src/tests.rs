//! What whole functions become, as text: expansions, names and messages.

use proc_macro2::{Group, TokenTree};

use crate::{Tokens, expand_device, expand_kernel};

fn parse(source: &str) -> Tokens {
    source.parse().unwrap()
}

fn pretty(tokens: Tokens) -> String {
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

fn kernel(source: &str) -> String {
    pretty(expand_kernel(Tokens::new(), parse(source)))
}

fn device(source: &str) -> String {
    pretty(expand_device(Tokens::new(), parse(source)))
}

/// A device function that a trait declares.
fn declaration(source: &str) -> String {
    let function = expand_device(Tokens::new(), parse(source));
    pretty(quote::quote!(trait Declares { #function }))
}

/// The lowered body of a device function, each constant that says where an op stands shortened to
/// the op's name.
fn body(source: &str) -> String {
    let function = expand_device(Tokens::new(), parse(&format!("fn helper(tl: &Scope) {{ {source} }}")));
    let text = pretty(shorten(function));
    let (_, text) = text.split_once("tl.frame();").unwrap();
    let text = text.trim_end().strip_suffix('}').unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" .", ".")
}

fn shorten(tokens: Tokens) -> Tokens {
    let mut out = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let constant = matches!(out.last(), Some(TokenTree::Ident(word)) if word == "const");
                if constant {
                    out.pop();
                    let source = group.stream().into_iter().last().unwrap();
                    let TokenTree::Group(source) = source else { panic!("no constant: {source}") };
                    out.push(source.stream().into_iter().last().unwrap());
                } else {
                    out.push(TokenTree::Group(Group::new(group.delimiter(), shorten(group.stream()))));
                }
            }
            token => out.push(token),
        }
    }
    out.into_iter().collect()
}

/// The messages of a macro call, one a line.
fn messages(tokens: Tokens) -> String {
    let file: syn::File = syn::parse2(tokens).unwrap();
    let message = |item| match item {
        syn::Item::Macro(item) => Some(item.mac.parse_body::<syn::LitStr>().unwrap().value()),
        _ => None,
    };
    file.items.into_iter().filter_map(message).collect::<Vec<_>>().join("\n")
}

fn wrong_kernel(source: &str) -> String {
    messages(expand_kernel(Tokens::new(), parse(source)))
}

fn wrong_device(source: &str) -> String {
    messages(expand_device(Tokens::new(), parse(source)))
}

/// The messages about a kernel's body.
fn wrong(body: &str) -> String {
    wrong_kernel(&format!("fn k() {{ {body} }}"))
}

#[test]
fn kernel_of_views_and_values() {
    let text = kernel(
        "/// Scales.
         #[inline] #[allow(clippy::similar_names)]
         pub fn scale<T: Float, const N: usize>(/** (n, d). */ x: In<T>, mut by: f32, lens: &[usize], o: lib::Out<T>)
         where T: Copy { tl::store(o, tl::load(x) * by); }",
    );
    insta::assert_snapshot!(text, @r#"
    /// Scales.
    #[allow(clippy::similar_names)]
    #[allow(non_camel_case_types)]
    #[derive(Clone, Debug)]
    pub struct scale<'args, T: Float, const N: usize>
    where
        T: Copy,
    {
        /// (n, d).
        pub x: In<T>,
        #[allow(missing_docs)]
        pub by: f32,
        #[allow(missing_docs)]
        pub lens: &'args [usize],
        #[allow(missing_docs)]
        pub o: lib::Out<T>,
    }
    impl<'args, T: Float, const N: usize> scale<'args, T, N>
    where
        T: Copy,
    {
        #[doc(hidden)]
        #[allow(
            clippy::too_many_arguments,
            clippy::needless_pass_by_value,
            clippy::used_underscore_items
        )]
        #[inline]
        #[allow(clippy::similar_names)]
        fn __record(
            #[allow(unused_variables)]
            tl: &tl::__rt::Scope,
            x: In<T>,
            mut by: f32,
            lens: &'args [usize],
            o: lib::Out<T>,
        ) {
            tl.at(const {
                    &tl::__rt::Source {
                        file: file!(),
                        line: line!(),
                        column: column!(),
                        name: "o",
                    }
                })
                .store(
                    o,
                    tl
                        .at(const {
                            &tl::__rt::Source {
                                file: file!(),
                                line: line!(),
                                column: column!(),
                                name: "o.load",
                            }
                        })
                        .load(x) * by,
                );
        }
    }
    impl<'args, T: Float, const N: usize> tl::__rt::Kernel for scale<'args, T, N>
    where
        T: Copy,
    {
        const NAME: &'static str = "scale";
        fn record(&self, tl: &tl::__rt::Scope) {
            Self::__record(
                tl,
                ::core::clone::Clone::clone(&self.x),
                ::core::clone::Clone::clone(&self.by),
                ::core::clone::Clone::clone(&self.lens),
                ::core::clone::Clone::clone(&self.o),
            );
        }
        fn tensors(&self) -> ::std::vec::Vec<tl::__rt::TensorId> {
            ::std::vec![self.x.tensor(), self.o.tensor()]
        }
    }
    #[doc(hidden)]
    #[allow(dead_code, private_interfaces, clippy::all, clippy::pedantic)]
    pub fn scale<'args, T: Float, const N: usize>(
        _: In<T>,
        _: f32,
        _: &'args [usize],
        _: lib::Out<T>,
    )
    where
        T: Copy,
        for<'__kernel> tl::Here: tl::__kernel::Called,
    {}
    const _: () = tl::__rt::USED;
    "#);
}

#[test]
fn device_result_lives_in_the_scope() {
    insta::assert_snapshot!(device("pub fn f(self, tl: &Scope, x: Tile<f32>) -> Result<Tile<'_, f32>, Pair<'_>> { const N: usize = 1; tl::eval(x) }"), @r#"
    #[allow(clippy::needless_lifetimes)]
    pub fn f<'scope>(
        self,
        tl: &'scope Scope,
        x: Tile<f32>,
    ) -> Result<Tile<'scope, f32>, Pair<'scope>> {
        const N: usize = 1;
        let _frame = tl.frame();
        tl.at(const {
                &tl::__rt::Source {
                    file: file!(),
                    line: line!(),
                    column: column!(),
                    name: "f",
                }
            })
            .eval(x)
    }
    "#);
    insta::assert_snapshot!(device("fn f<'t>(tl: &'t Scope, x: Tile<f32>) -> Expr<f32> { x }"), @r"
    #[allow(clippy::needless_lifetimes)]
    fn f<'t>(tl: &'t Scope, x: Tile<f32>) -> Expr<'t, f32> {
        let _frame = tl.frame();
        x
    }
    ");
    insta::assert_snapshot!(declaration("fn f(tl: &Scope, g: impl Fn(Tile<'_, f32>) -> Tile<'_, f32>) -> usize;"), @r"
    trait Declares {
        #[allow(clippy::needless_lifetimes)]
        fn f(tl: &Scope, g: impl Fn(Tile<'_, f32>) -> Tile<'_, f32>) -> usize;
    }
    ");
}

#[test]
fn names() {
    let names = [
        "let x = tl::load(v);",
        "let x: Tile<f32> = (tl::eval(a));",
        "let mut x = { let y = tl::load(v); tl::eval(y) };",
        "let x = if tl::pe() == 0 { tl::load(a) } else { match c { 1 => tl::load(b), _ => tl::load(d) } };",
        "let x = tl::recv(from, shape)?.rows(0..4);",
        "let (a, b) = (tl::load(v), tl::load(w));",
        "x = tl::eval(x + 1.0);",
        "let p = Softmax { m: tl::full([1, 1], 0.0), l };",
        "let s = tl::dot(q, k.t()) * tl::exp(z);",
        "tl::copy_to(self.l, self.l * alpha + tl::sum(p, Axis::Cols));",
        "tl::store(o.rows(group.queries(&a)), acc.output::<T>(tl));",
        "tl::send(to, self.m); tl::dot_add(acc.0, a, tl::eval(b));",
        "let out = tl::eval(helper(tl, tl::eval(x)));",
        "let other = acc.recv(tl, from);",
        "acc.update(tl, tl::exp(s), v);",
        "Softmax::empty(tl, 4)",
        "let all = rows.map(|r| tl::load(v.rows(r))).collect();",
        "let all = vec![tl::zeros::<f32>([1, 1]); 3];",
        "tl::eval::<f32>(x);",
        "let c = |x| { let y = tl::eval(x); return tl::exp(y); };",
    ];
    let lines = names.map(|source| format!("{source}\n    {}", body(source)));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    let x = tl::load(v);
        let x = tl.at("x").load(v);
    let x: Tile<f32> = (tl::eval(a));
        let x: Tile<f32> = (tl.at("x").eval(a));
    let mut x = { let y = tl::load(v); tl::eval(y) };
        let mut x = { let y = tl.at("y").load(v); tl.at("x").eval(y) };
    let x = if tl::pe() == 0 { tl::load(a) } else { match c { 1 => tl::load(b), _ => tl::load(d) } };
        let x = if tl.at("x.pe").pe() == 0 { tl.at("x").load(a) } else { match c { 1 => tl.at("x").load(b), _ => tl.at("x").load(d), } };
    let x = tl::recv(from, shape)?.rows(0..4);
        let x = tl.at("x").recv(from, shape)?.rows(0..4);
    let (a, b) = (tl::load(v), tl::load(w));
        let (a, b) = (tl.at("a").load(v), tl.at("b").load(w));
    x = tl::eval(x + 1.0);
        x = tl.at("x").eval(x + 1.0);
    let p = Softmax { m: tl::full([1, 1], 0.0), l };
        let p = Softmax { m: tl.at("m").full([1, 1], 0.0), l, };
    let s = tl::dot(q, k.t()) * tl::exp(z);
        let s = tl.at("s.dot").dot(q, k.t()) * tl.at("s.exp").exp(z);
    tl::copy_to(self.l, self.l * alpha + tl::sum(p, Axis::Cols));
        tl.at("l").copy_to(self.l, self.l * alpha + tl.at("l.sum").sum(p, Axis::Cols));
    tl::store(o.rows(group.queries(&a)), acc.output::<T>(tl));
        tl.at("o").store(o.rows(group.queries(&a)), acc.output::<T>(tl.here("o.output")));
    tl::send(to, self.m); tl::dot_add(acc.0, a, tl::eval(b));
        tl.at("m").send(to, self.m); tl.at("acc").dot_add(acc.0, a, tl.at("acc.eval").eval(b));
    let out = tl::eval(helper(tl, tl::eval(x)));
        let out = tl.at("out").eval(helper(tl.here("out.helper"), tl.at("out.eval").eval(x)));
    let other = acc.recv(tl, from);
        let other = acc.recv(tl.here("other"), from);
    acc.update(tl, tl::exp(s), v);
        acc.update(tl.here(""), tl.at("update.exp").exp(s), v);
    Softmax::empty(tl, 4)
        Softmax::empty(tl.here(""), 4)
    let all = rows.map(|r| tl::load(v.rows(r))).collect();
        let all = rows.map(|r| tl.at("all.load").load(v.rows(r))).collect();
    let all = vec![tl::zeros::<f32>([1, 1]); 3];
        let all = vec![tl.at("all.zeros").zeros:: < f32 > ([1, 1]); 3];
    tl::eval::<f32>(x);
        tl.at("").eval::<f32>(x);
    let c = |x| { let y = tl::eval(x); return tl::exp(y); };
        let c = |x| { let y = tl.at("y").eval(x); return tl.at("").exp(y); };
    "#);
}

#[test]
fn result_of_a_device_function_is_called_like_it() {
    insta::assert_snapshot!(device("fn finite(tl: &Scope) -> Tile<'_, f32> { if a { return tl::eval(x); } tl::zeros([1, 1]) }"), @r#"
    #[allow(clippy::needless_lifetimes)]
    fn finite<'scope>(tl: &'scope Scope) -> Tile<'scope, f32> {
        let _frame = tl.frame();
        if a {
            return tl
                .at(const {
                    &tl::__rt::Source {
                        file: file!(),
                        line: line!(),
                        column: column!(),
                        name: "finite",
                    }
                })
                .eval(x);
        }
        tl.at(const {
                &tl::__rt::Source {
                    file: file!(),
                    line: line!(),
                    column: column!(),
                    name: "finite",
                }
            })
            .zeros([1, 1])
    }
    "#);
}

#[test]
fn scratch_scopes() {
    let scopes = [
        "scratch_scope! { let x = tl::load(v); }",
        "scratch_scope!({ f(tl); });",
        "scratch_scope!(buffers = 2usize, { f(); },);",
        "let n = kernbench::scratch_scope!(buffers = depth + 1, { tl::load(v).nrows() }) + 1;",
        "scratch_scope!({ x }).min(3)",
        "scratch_scope! { x = 1; y }",
        "scratch_scope!({ x }) + 1",
        "scratch_scope!({ { let y = 1; } z },)",
    ];
    let lines = scopes.map(|source| format!("{source}\n    {}", body(source)));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    scratch_scope! { let x = tl::load(v); }
        { let scratch_scope = tl.enter("", 1); #[allow(unused_variables)] let tl = &scratch_scope; let x = tl.at("x").load(v); }
    scratch_scope!({ f(tl); });
        { let scratch_scope = tl.enter("", 1); #[allow(unused_variables)] let tl = &scratch_scope; f(tl.here("")); };
    scratch_scope!(buffers = 2usize, { f(); },);
        { let scratch_scope = tl.enter("", 2); #[allow(unused_variables)] let tl = &scratch_scope; f(); };
    let n = kernbench::scratch_scope!(buffers = depth + 1, { tl::load(v).nrows() }) + 1;
        let n = { let scratch_scope = tl.enter("n.scope", (depth + 1) as u32); #[allow(unused_variables)] let tl = &scratch_scope; tl.at("n.load").load(v).nrows() } + 1;
    scratch_scope!({ x }).min(3)
        { let scratch_scope = tl.enter("", 1); #[allow(unused_variables)] let tl = &scratch_scope; x }.min(3)
    scratch_scope! { x = 1; y }
        { let scratch_scope = tl.enter("", 1); #[allow(unused_variables)] let tl = &scratch_scope; x = 1; y }
    scratch_scope!({ x }) + 1
        ({ let scratch_scope = tl.enter("", 1); #[allow(unused_variables)] let tl = &scratch_scope; x }) + 1
    scratch_scope!({ { let y = 1; } z },)
        { let scratch_scope = tl.enter("", 1); #[allow(unused_variables)] let tl = &scratch_scope; { let y = 1; } z }
    "#);
}

#[test]
fn calls_inside_macros() {
    let macros = [
        "assert!(tl::pe() < 8, \"pe {}\", tl::cube());",
        "let t = vec![Softmax::empty(tl, 4), tl::load(v)];",
        "select! { a => tl::load::<Vec<f32>>(v), b => helper(tl, x) }",
        "rows!(r in scratch_scope!({ tl::fence() }))",
        "println!(\"{tl}\");",
        "other!(a::tl::load(x) => y);",
    ];
    let lines = macros.map(|source| format!("{source}\n    {}", body(source)));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    assert!(tl::pe() < 8, "pe {}", tl::cube());
        assert!(tl.at("").pe() < 8, "pe {}", tl.at("").cube());
    let t = vec![Softmax::empty(tl, 4), tl::load(v)];
        let t = vec![Softmax::empty(tl.here("t.empty"), 4), tl.at("t.load").load(v)];
    select! { a => tl::load::<Vec<f32>>(v), b => helper(tl, x) }
        select! { a => tl.at("").load:: < Vec < f32 > > (v), b => helper(tl.here(""), x) }
    rows!(r in scratch_scope!({ tl::fence() }))
        rows!( r in { let scratch_scope = tl.enter("", 1); #[allow(unused_variables)] let tl = & scratch_scope; tl.at("").fence() } )
    println!("{tl}");
        println!("{tl}");
    other!(a::tl::load(x) => y);
        other!(a::tl::load(x) => y);
    "#);
}

#[test]
fn one_message_for_one_mistake() {
    let heads = [
        "async fn k() {}",
        "const fn k() {}",
        "unsafe fn k() {}",
        "extern \"C\" fn k() {}",
        "unsafe extern \"C\" fn k(n: usize, ...) {}",
        "fn k(&self) { tl::fence(); }",
        "fn k(tl: &Scope, n: usize) { tl::fence(); }",
        "fn k(scratch_scope: usize) {}",
        "fn k((a, b): (usize, usize)) {}",
        "fn k(n @ 0..: usize) {}",
        "fn k(x: impl Readable<f32>) {}",
        "fn k(x: &[impl Fn(usize)]) {}",
        "fn k<T: Float>(n: usize) {}",
        "fn k() -> usize { 3 }",
        "fn k() -> Result<(), String> { f()?; Ok(()) }",
        "fn k() -> () {}",
        "struct K;",
        "fn k();",
    ];
    let lines = heads.map(|source| format!("{source}\n    {}", wrong_kernel(source).replace('\n', "\n    ")));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    async fn k() {}
        a kernel is recorded by an ordinary call: remove `async`
    const fn k() {}
        a kernel is recorded at launch: remove `const`
    unsafe fn k() {}
        a kernel is safe to record: remove `unsafe`
    extern "C" fn k() {}
        a kernel is recorded in Rust: remove `extern "C"`
    unsafe extern "C" fn k(n: usize, ...) {}
        a kernel is safe to record: remove `unsafe`
        a kernel is recorded in Rust: remove `extern "C"`
        a variable number of arguments: take a slice, `lens: &[usize]`
    fn k(&self) { tl::fence(); }
        a kernel is a free function: move it out of the `impl` and take what it needs as arguments
    fn k(tl: &Scope, n: usize) { tl::fence(); }
        a kernel has `tl` without declaring it: remove this argument
    fn k(scratch_scope: usize) {}
        `scratch_scope` is bound by the macro: give this binding another name
    fn k((a, b): (usize, usize)) {}
        an argument of a kernel is a field of its struct: give it a name, and write `let (a, b) = name;` in the body
    fn k(n @ 0..: usize) {}
        an argument of a kernel is a field of its struct: give it a name, and write `let n @ 0.. = name;` in the body
    fn k(x: impl Readable<f32>) {}
        an argument of a kernel is a field of its struct, which names its type: write `fn k<A: Readable<f32>>(.., x: A)`
    fn k(x: &[impl Fn(usize)]) {}
        an argument of a kernel is a field of its struct, which names its type: write `fn k<A: Fn(usize)>(.., x: A)`
    fn k<T: Float>(n: usize) {}
        a launch could not say what `T` is: mention it in an argument, as in `q: In<T>`, or remove it
    fn k() -> usize { 3 }
        a kernel returns nothing: take an `Out` argument and `tl::store` the result to it
    fn k() -> Result<(), String> { f()?; Ok(()) }
        a kernel returns nothing: take an `Out` argument and `tl::store` the result to it
    fn k() -> () {}
        
    struct K;
        `#[kernel]` goes on a function: `#[kernel] fn name(..) { .. }`
    fn k();
        a kernel has a body: write `fn k(..) { .. }`
    "#);

    let bodies = [
        "let x = tl::zero::<f32>([1, 1]);",
        "tl::frobnicate(x, tl::loda(y));",
        "let y = tl::matmul(a, b);",
        "xs.map(tl::exp);",
        "xs.fold(z, tl::maximum);",
        "xs.map(kernbench::tl::exp);",
        "kernbench::tl::load(x);",
        "let tl = 1;",
        "f(|scratch_scope| 1);",
        "match p { Pair { tl } => (), }",
        "f()?;",
        "let f = || { g()?; Ok(1) };",
        "inner { n }.record(tl);",
        "Kernel::record(&inner { n }, tl);",
        "scratch_scope!(buffers = 0, {});",
        "scratch_scope!(buffers = 1.5, {});",
        "scratch_scope!(buffers = 2);",
        "scratch_scope!(buffer = 2, {});",
        "scratch_scope!(2, {});",
        "scratch_scope!(buffers = 2, buffers = 3, {});",
        "scratch_scope!({}, buffers = 2);",
        "vec![tl::exp(x, tl::lod(v))];",
    ];
    let lines = bodies.map(|source| format!("{source}\n    {}", wrong(source).replace('\n', "\n    ")));
    insta::assert_snapshot!(lines.join("\n"), @r"
    let x = tl::zero::<f32>([1, 1]);
        unknown intrinsic `tl::zero`: did you mean `tl::zeros`?
    tl::frobnicate(x, tl::loda(y));
        unknown intrinsic `tl::frobnicate`: the documentation of `tl` lists the intrinsics
        unknown intrinsic `tl::loda`: did you mean `tl::load`?
    let y = tl::matmul(a, b);
        unknown intrinsic `tl::matmul`: write `tl::dot(a, b)`
    xs.map(tl::exp);
        an intrinsic is not a value: write `|x| tl::exp(x)`
    xs.fold(z, tl::maximum);
        an intrinsic is not a value: write `|a, b| tl::maximum(a, b)`
    xs.map(kernbench::tl::exp);
        in a kernel an intrinsic is written `tl::exp`
        an intrinsic is not a value: write `|x| tl::exp(x)`
    kernbench::tl::load(x);
        in a kernel an intrinsic is written `tl::load`
    let tl = 1;
        `tl` is bound by the macro: give this binding another name
    f(|scratch_scope| 1);
        `scratch_scope` is bound by the macro: give this binding another name
    match p { Pair { tl } => (), }
        `tl` is bound by the macro: give this binding another name
    f()?;
        a kernel returns nothing, so `?` has nowhere to go: use `let .. else { return }`, or move the code to a `#[device]` function that returns a `Result`
    let f = || { g()?; Ok(1) };
        
    inner { n }.record(tl);
        a kernel does not call a kernel: move the code that both need to a `#[device]` function
    Kernel::record(&inner { n }, tl);
        a kernel does not call a kernel: move the code that both need to a `#[device]` function
    scratch_scope!(buffers = 0, {});
        a scratch scope has at least one buffer: `buffers = 0` leaves its tiles no place, write `buffers = 1` or leave the option out
    scratch_scope!(buffers = 1.5, {});
        `buffers` is a whole number: write `buffers = 2`
    scratch_scope!(buffers = 2);
        the block is missing: write `scratch_scope!(buffers = 2, { .. })`
    scratch_scope!(buffer = 2, {});
        unknown option `buffer`: `scratch_scope!` takes `buffers = n`
    scratch_scope!(2, {});
        `scratch_scope!` takes `buffers = n` and then a block: write `scratch_scope!(buffers = 2, { .. })`
    scratch_scope!(buffers = 2, buffers = 3, {});
        `buffers` is given twice: remove one
    scratch_scope!({}, buffers = 2);
        `scratch_scope!` takes `buffers = n` and then a block: write `scratch_scope!(buffers = 2, { .. })`
    vec![tl::exp(x, tl::lod(v))];
        unknown intrinsic `tl::lod`: did you mean `tl::load`?
    ");

    let devices = [
        "fn f() { tl::fence(); }",
        "fn f(&self, n: usize) { tl::fence(); }",
        "fn f(n: usize, tl: &Scope) { tl::fence(); }",
        "fn f(scope: &Scope) { tl::fence(); }",
        "fn f(tl: Scope) { tl::fence(); }",
        "fn f(tl: &mut Scope) { tl::fence(); }",
        "fn f(tl: &Scope, scratch_scope: usize) {}",
        "async fn f(tl: &Scope) {}",
        "fn f(tl: &Scope) -> Option<usize> { g()?; None }",
        "impl F {}",
    ];
    let lines =
        devices.map(|source| format!("{source}\n    {}", wrong_device(source).replace('\n', "\n    ")));
    insta::assert_snapshot!(lines.join("\n"), @r"
    fn f() { tl::fence(); }
        a `#[device]` function takes the scratch scope first: write `fn f(tl: &Scope, ..)`
    fn f(&self, n: usize) { tl::fence(); }
        a `#[device]` function takes the scratch scope first: write `fn f(&self, tl: &Scope, ..)`
    fn f(n: usize, tl: &Scope) { tl::fence(); }
        the scratch scope comes first: move `tl: &Scope` to the front
    fn f(scope: &Scope) { tl::fence(); }
        the scratch scope of a `#[device]` function is called `tl`: write `tl: &Scope`
    fn f(tl: Scope) { tl::fence(); }
        `tl` is a shared reference: write `tl: &Scope`
    fn f(tl: &mut Scope) { tl::fence(); }
        `tl` is a shared reference: write `tl: &Scope`
    fn f(tl: &Scope, scratch_scope: usize) {}
        `scratch_scope` is bound by the macro: give this binding another name
    async fn f(tl: &Scope) {}
        a device function is recorded by an ordinary call: remove `async`
    fn f(tl: &Scope) -> Option<usize> { g()?; None }
        
    impl F {}
        `#[device]` goes on a function: `#[device] fn name(..) { .. }`
    ");

    insta::assert_snapshot!(messages(expand_kernel(parse("grid = 4"), parse("fn k() {}"))), @"`#[kernel]` takes no arguments: write `#[kernel]`");
}

#[test]
fn a_mistake_leaves_the_item_in_place() {
    insta::assert_snapshot!(kernel("fn k((a, b): (usize, usize), x: impl Fn()) { tl::lod(a)?; }"), @r#"
    #[allow(non_camel_case_types)]
    #[derive(Clone, Debug)]
    struct k<Impl0x: Fn()> {
        #[allow(missing_docs)]
        pub arg0: (usize, usize),
        #[allow(missing_docs)]
        pub x: Impl0x,
    }
    impl<Impl0x: Fn()> k<Impl0x> {
        #[doc(hidden)]
        #[allow(
            clippy::too_many_arguments,
            clippy::needless_pass_by_value,
            clippy::used_underscore_items
        )]
        #[allow(warnings)]
        fn __record(
            #[allow(unused_variables)]
            tl: &tl::__rt::Scope,
            (a, b): (usize, usize),
            x: Impl0x,
        ) {
            tl.at(const {
                    &tl::__rt::Source {
                        file: file!(),
                        line: line!(),
                        column: column!(),
                        name: "",
                    }
                })
                .load(a)
                .unwrap();
        }
    }
    impl<Impl0x: Fn()> tl::__rt::Kernel for k<Impl0x> {
        const NAME: &'static str = "k";
        #[allow(warnings)]
        fn record(&self, tl: &tl::__rt::Scope) {
            Self::__record(
                tl,
                ::core::clone::Clone::clone(&self.arg0),
                ::core::clone::Clone::clone(&self.x),
            );
        }
        fn tensors(&self) -> ::std::vec::Vec<tl::__rt::TensorId> {
            ::std::vec![]
        }
    }
    #[doc(hidden)]
    #[allow(dead_code, private_interfaces, clippy::all, clippy::pedantic)]
    fn k<Impl0x: Fn()>(_: (usize, usize), _: Impl0x)
    where
        for<'__kernel> tl::Here: tl::__kernel::Called,
    {}
    const _: () = tl::__rt::USED;
    ::core::compile_error! {
        "an argument of a kernel is a field of its struct: give it a name, and write `let (a, b) = name;` in the body"
    }
    ::core::compile_error! {
        "an argument of a kernel is a field of its struct, which names its type: write `fn k<A: Fn()>(.., x: A)`"
    }
    ::core::compile_error! {
        "unknown intrinsic `tl::lod`: did you mean `tl::load`?"
    }
    ::core::compile_error! {
        "a kernel returns nothing, so `?` has nowhere to go: use `let .. else { return }`, or move the code to a `#[device]` function that returns a `Result`"
    }
    "#);
    insta::assert_snapshot!(kernel("fn k(&self) { tl::fence(); }"), @r#"
    #[allow(warnings)]
    fn k(&self) {
        ::core::unimplemented!()
    }
    ::core::compile_error! {
        "a kernel is a free function: move it out of the `impl` and take what it needs as arguments"
    }
    "#);
    insta::assert_snapshot!(device("fn f(n: usize) -> usize { tl::pe() }"), @r#"
    #[allow(clippy::needless_lifetimes)]
    #[allow(warnings)]
    fn f(n: usize) -> usize {
        ::core::unimplemented!()
    }
    ::core::compile_error! {
        "a `#[device]` function takes the scratch scope first: write `fn f(tl: &Scope, ..)`"
    }
    "#);
    insta::assert_snapshot!(kernel("pub struct K;"), @r#"
    pub struct K;
    ::core::compile_error! {
        "`#[kernel]` goes on a function: `#[kernel] fn name(..) { .. }`"
    }
    "#);
}
