//! Rewrites the body of a kernel or a device function into calls of the recorder.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Block, Expr, ExprBlock, FieldValue, Item, Local, Macro, Pat, PatIdent, Path, Stmt, Type,
};

use crate::calls::{intrinsic_path, is_tl};
use crate::errors::Errors;
use crate::names::Binding;
use crate::parse::{Buffers, ScopeBody};

/// The pass over one function.
pub struct Lowering<'e> {
    pub errors: &'e mut Errors,
    /// `?` has nowhere to go.
    infallible: bool,
    /// What binds the expression at hand.
    pub binding: Binding,
    /// What binds the value the function returns.
    result: Binding,
}

impl<'e> Lowering<'e> {
    /// The pass over a kernel; `unit` if it returns nothing, as it should.
    pub fn kernel(unit: bool, errors: &'e mut Errors) -> Self {
        Lowering { errors, infallible: unit, binding: Binding::None, result: Binding::None }
    }

    /// The pass over a device function; a value it returns is called `result`.
    pub fn device(result: Binding, errors: &'e mut Errors) -> Self {
        Lowering { errors, infallible: false, binding: Binding::None, result }
    }

    /// Rewrites the body of the function.
    pub fn body(&mut self, body: &mut Block) {
        let result = self.result.clone();
        self.with(result, |this| this.visit_block_mut(body));
    }

    /// Checks the names that the arguments bind.
    pub fn patterns<'p>(&mut self, patterns: impl Iterator<Item = &'p mut Pat>) {
        patterns.for_each(|pat| self.visit_pat_mut(pat));
    }

    /// Runs `visit` on something that `binding` binds.
    pub fn with(&mut self, binding: Binding, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.binding, binding);
        visit(self);
        self.binding = outer;
    }

    pub fn expr(&mut self, binding: Binding, expr: &mut Expr) {
        self.with(binding, |this| this.visit_expr_mut(expr));
    }

    /// Visits a part of the expression at hand.
    pub fn part(&mut self, expr: &mut Expr) {
        self.expr(self.binding.part(), expr);
    }

    /// `scratch_scope!`, as a block with a guard at the user's token.
    fn scope(&mut self, mac: &Macro, attrs: Vec<Attribute>) -> Expr {
        let at = mac.path.segments.last().map_or_else(Span::call_site, |segment| segment.ident.span());
        let ScopeBody { buffers, stmts, mistakes } = mac.parse_body().unwrap_or_else(|error| {
            self.errors.push(error);
            ScopeBody { buffers: None, stmts: Vec::new(), mistakes: Vec::new() }
        });
        mistakes.into_iter().for_each(|mistake| self.errors.push(mistake));
        let buffers = match buffers {
            None => quote_spanned!(at=> 1),
            Some(Buffers::Literal(literal)) => {
                let digits = syn::LitInt::new(literal.base10_digits(), literal.span());
                quote!(#digits)
            }
            Some(Buffers::Expr(mut count)) => {
                self.expr(Binding::None, &mut count);
                quote!((#count) as u32)
            }
        };
        let mut block = Block { brace_token: syn::token::Brace(mac.delimiter.span().join()), stmts };
        self.visit_block_mut(&mut block);
        let (guard, tl, source) =
            (Ident::new("scratch_scope", at), Ident::new("tl", at), source(&self.binding.name("scope"), at));
        // A scope may hold no intrinsic.
        let quiet = quote_spanned!(at=> #[allow(unused_variables)]);
        let head: [TokenStream; 2] = [
            quote_spanned!(at=> let #guard = #tl.enter(#source, #buffers);),
            quote_spanned!(at=> #quiet let #tl = &#guard;),
        ];
        let head = head.map(|statement| Stmt::Expr(Expr::Verbatim(statement), None));
        block.stmts.splice(0..0, head);
        Expr::Block(ExprBlock { attrs, label: None, block })
    }

    /// Visits a closure or an `async` block: what it returns is not what the function returns.
    fn nested(&mut self, expr: &mut Expr) {
        let (infallible, result) = (self.infallible, std::mem::take(&mut self.result));
        self.infallible = false;
        self.with(self.binding.part(), |this| visit_mut::visit_expr_mut(this, expr));
        (self.infallible, self.result) = (infallible, result);
    }
}

/// The constant that says where an op stands and what it is called.
pub fn source(name: &str, at: Span) -> TokenStream {
    let tl = Ident::new("tl", at);
    quote_spanned! {at=>
        const { &#tl::__rt::Source { file: file!(), line: line!(), column: column!(), name: #name } }
    }
}

pub fn is_scratch_scope(path: &Path) -> bool {
    path.segments.last().is_some_and(|segment| segment.ident == "scratch_scope")
}

impl VisitMut for Lowering<'_> {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        self.shorten(expr);
        match expr {
            // The value of these is the value of a part.
            Expr::Paren(paren) => self.visit_expr_mut(&mut paren.expr),
            Expr::Group(group) => self.visit_expr_mut(&mut group.expr),
            Expr::Reference(reference) => self.visit_expr_mut(&mut reference.expr),
            Expr::Block(block) => self.visit_block_mut(&mut block.block),
            Expr::If(choice) => {
                self.part(&mut choice.cond);
                self.visit_block_mut(&mut choice.then_branch);
                if let Some((_, otherwise)) = &mut choice.else_branch {
                    self.visit_expr_mut(otherwise);
                }
            }
            Expr::Match(choice) => {
                self.part(&mut choice.expr);
                for arm in &mut choice.arms {
                    self.with(self.binding.part(), |this| this.visit_pat_mut(&mut arm.pat));
                    self.visit_expr_mut(&mut arm.body);
                }
            }
            Expr::Try(inner) => {
                self.visit_expr_mut(&mut inner.expr);
                if self.infallible {
                    let message = "a kernel returns nothing, so `?` has nowhere to go: use `let .. else { return }`, \
                                   or move the code to a `#[device]` function that returns a `Result`";
                    self.errors.on(inner.question_token, message);
                    let value = &inner.expr;
                    *expr = Expr::Verbatim(quote!(#value.unwrap()));
                }
            }
            Expr::Return(inner) => {
                if let Some(value) = &mut inner.expr {
                    self.expr(self.result.clone(), value);
                }
            }
            Expr::Assign(assign) => {
                self.expr(Binding::None, &mut assign.left);
                self.expr(Binding::destination(&assign.left), &mut assign.right);
            }
            Expr::Closure(_) | Expr::Async(_) | Expr::TryBlock(_) => self.nested(expr),
            Expr::Macro(mac) if is_scratch_scope(&mac.mac.path) => {
                *expr = self.scope(&mac.mac, std::mem::take(&mut mac.attrs));
            }
            Expr::Call(call) if intrinsic_path(&call.func).is_some() => self.intrinsic(expr),
            Expr::Call(_) => self.call(expr),
            Expr::MethodCall(_) => self.method_call(expr),
            Expr::Path(_) if !is_tl(expr) => self.path(expr),
            _ => self.with(self.binding.part(), |this| visit_mut::visit_expr_mut(this, expr)),
        }
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        let last = block.stmts.len().saturating_sub(1);
        for (i, stmt) in block.stmts.iter_mut().enumerate() {
            let value = match stmt {
                Stmt::Expr(_, semi) => semi.is_none(),
                Stmt::Macro(mac) => mac.semi_token.is_none(),
                _ => false,
            };
            let binding = if i == last && value { self.binding.clone() } else { Binding::None };
            self.with(binding, |this| this.visit_stmt_mut(stmt));
        }
    }

    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Macro(mac) if is_scratch_scope(&mac.mac.path) => {
                let scope = self.scope(&mac.mac, std::mem::take(&mut mac.attrs));
                *stmt = Stmt::Expr(scope, mac.semi_token);
            }
            _ => visit_mut::visit_stmt_mut(self, stmt),
        }
    }

    fn visit_local_mut(&mut self, local: &mut Local) {
        self.visit_pat_mut(&mut local.pat);
        let Some(init) = &mut local.init else { return };
        match (&local.pat, &mut *init.expr) {
            (Pat::Tuple(names), Expr::Tuple(values)) if names.elems.len() == values.elems.len() => {
                for (name, value) in names.elems.iter().zip(&mut values.elems) {
                    self.expr(Binding::pattern(name), value);
                }
            }
            (pat, value) => self.expr(Binding::pattern(pat), value),
        }
        if let Some((_, otherwise)) = &mut init.diverge {
            self.expr(Binding::None, otherwise);
        }
    }

    fn visit_field_value_mut(&mut self, field: &mut FieldValue) {
        self.expr(Binding::field(&field.member), &mut field.expr);
    }

    fn visit_pat_ident_mut(&mut self, pat: &mut PatIdent) {
        if pat.ident == "tl" || pat.ident == "scratch_scope" {
            let name = &pat.ident;
            self.errors
                .at(name.span(), format!("`{name}` is bound by the macro: give this binding another name"));
            pat.ident = Ident::new(&format!("{name}_"), name.span());
        }
        visit_mut::visit_pat_ident_mut(self, pat);
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        mac.tokens = self.opaque(std::mem::take(&mut mac.tokens));
    }

    // A function in the body has a scope of its own, if any; types and attributes hold no ops.
    fn visit_item_mut(&mut self, _: &mut Item) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_attribute_mut(&mut self, _: &mut Attribute) {}
}

/// The span of the first token of an expression.
pub fn start(expr: &Expr) -> Span {
    expr.to_token_stream().into_iter().next().map_or_else(|| expr.span(), |token| token.span())
}
