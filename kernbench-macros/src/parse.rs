//! What the user wrote, as syntax: the function under an attribute, and the insides of
//! `scratch_scope!`.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Block, Error, Expr, Ident, Item, Lit, Result, Signature, Stmt, Token, Visibility};

/// A function, or in a trait the declaration of one.
pub struct Function {
    pub attrs: Vec<Attribute>,
    pub vis: Visibility,
    pub sig: Signature,
    pub body: Option<Block>,
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut attrs = input.call(Attribute::parse_outer)?;
        let (vis, sig) = (input.parse()?, input.parse()?);
        if input.parse::<Option<Token![;]>>()?.is_some() {
            return Ok(Function { attrs, vis, sig, body: None });
        }
        let content;
        let brace_token = syn::braced!(content in input);
        attrs.extend(content.call(Attribute::parse_inner)?);
        let body = Some(Block { brace_token, stmts: content.call(Block::parse_within)? });
        Ok(Function { attrs, vis, sig, body })
    }
}

/// The function under `#[attribute]`; otherwise the mistake, and what of the item to emit still.
pub fn function(attribute: &str, item: TokenStream) -> std::result::Result<Function, (Error, TokenStream)> {
    let error = match syn::parse2::<Function>(item.clone()) {
        Ok(function) => return Ok(function),
        Err(error) => error,
    };
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(_) | Item::Verbatim(_)) | Err(_) => Err((error, TokenStream::new())),
        Ok(_) => {
            let message =
                format!("`#[{attribute}]` goes on a function: `#[{attribute}] fn name(..) {{ .. }}`");
            Err((Error::new(Span::call_site(), message), item))
        }
    }
}

/// `scratch_scope!`'s number of buffers.
pub enum Buffers {
    Literal(syn::LitInt),
    /// Computed at launch.
    Expr(Expr),
}

/// The insides of `scratch_scope!`: `buffers = n, { .. }`, `{ .. }` or the statements.
pub struct ScopeBody {
    pub buffers: Option<Buffers>,
    pub stmts: Vec<Stmt>,
    /// Mistakes in the options; the statements stand nevertheless.
    pub mistakes: Vec<Error>,
}

/// `name = value` before a comma.
struct ScopeOption {
    name: Ident,
    value: Expr,
}

impl Parse for ScopeOption {
    fn parse(input: ParseStream) -> Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(ScopeOption { name, value: input.parse()? })
    }
}

const FORM: &str = "write `scratch_scope!(buffers = 2, { .. })`";

impl Parse for ScopeBody {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut body = ScopeBody { buffers: None, stmts: Vec::new(), mistakes: Vec::new() };
        while !input.is_empty() {
            let ahead = input.fork();
            if let Ok(block) = ahead.parse::<Block>()
                && ahead.parse::<Option<Token![,]>>().is_ok()
                && ahead.is_empty()
            {
                body.stmts = block.stmts;
                input.parse::<TokenStream>()?;
                break;
            }
            // An option is told from an assignment, the first statement, by its comma.
            let ahead = input.fork();
            let option = ahead.parse::<ScopeOption>().ok();
            if let Some(option) = option
                && (ahead.peek(Token![,]) || (ahead.is_empty() && option.name == "buffers"))
            {
                if ahead.is_empty() {
                    let message = format!("the block is missing: {FORM}");
                    body.mistakes.push(Error::new(option.name.span(), message));
                    input.parse::<TokenStream>()?;
                    break;
                }
                input.parse::<ScopeOption>()?;
                input.parse::<Token![,]>()?;
                body.option(option);
                continue;
            }
            let ahead = input.fork();
            if let Ok(value) = ahead.parse::<Expr>()
                && ahead.peek(Token![,])
            {
                let message = format!("`scratch_scope!` takes `buffers = n` and then a block: {FORM}");
                body.mistakes.push(Error::new_spanned(&value, message));
                input.parse::<Expr>()?;
                input.parse::<Token![,]>()?;
                if let Expr::Block(block) = value {
                    body.stmts = block.block.stmts;
                    input.parse::<TokenStream>()?;
                }
                continue;
            }
            body.stmts = input.call(Block::parse_within)?;
        }
        Ok(body)
    }
}

impl ScopeBody {
    fn option(&mut self, ScopeOption { name, value }: ScopeOption) {
        let mistake = if name != "buffers" {
            let message = format!("unknown option `{name}`: `scratch_scope!` takes `buffers = n`");
            Error::new(name.span(), message)
        } else if self.buffers.is_some() {
            Error::new(name.span(), "`buffers` is given twice: remove one")
        } else {
            match number(value) {
                Ok(buffers) => return self.buffers = Some(buffers),
                Err(mistake) => mistake,
            }
        };
        self.mistakes.push(mistake);
    }
}

/// The value of `buffers`.
fn number(value: Expr) -> Result<Buffers> {
    let Expr::Lit(literal) = &value else { return Ok(Buffers::Expr(value)) };
    let Lit::Int(int) = &literal.lit else {
        return Err(Error::new_spanned(value, "`buffers` is a whole number: write `buffers = 2`"));
    };
    match int.base10_parse::<u32>() {
        Ok(0) => {
            let message = "a scratch scope has at least one buffer: `buffers = 0` leaves its tiles no place, \
                           write `buffers = 1` or leave the option out";
            Err(Error::new(int.span(), message))
        }
        Ok(_) => Ok(Buffers::Literal(int.clone())),
        Err(error) => Err(error),
    }
}

/// Expressions with commas or semicolons between, as in `vec![..]` and `assert!(..)`.
pub struct Expressions(pub Vec<(Expr, TokenStream)>);

impl Parse for Expressions {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut all = Vec::new();
        while !input.is_empty() {
            let value = input.parse()?;
            let separator = if input.peek(Token![;]) {
                input.parse::<Token![;]>()?.into_token_stream()
            } else if input.is_empty() {
                TokenStream::new()
            } else {
                input.parse::<Token![,]>()?.into_token_stream()
            };
            all.push((value, separator));
        }
        Ok(Expressions(all))
    }
}
