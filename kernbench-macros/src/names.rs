//! How an op gets its name from what the user binds it to.

use syn::ext::IdentExt;
use syn::{Expr, Member, Pat};

use crate::model::text;

/// What binds the value of the expression at hand.
#[derive(Clone, Default)]
pub enum Binding {
    /// Nothing that has a name.
    #[default]
    None,
    /// The value itself is bound to this name: `let x = HERE`.
    Whole(String),
    /// The value is part of what is bound to this name: `let x = HERE + 1`.
    Part(String),
}

impl Binding {
    /// The name of the op `callee` whose value this binds.
    pub fn name(&self, callee: &str) -> String {
        match self {
            Binding::None => String::new(),
            Binding::Whole(name) => name.clone(),
            Binding::Part(name) => format!("{name}.{callee}"),
        }
    }

    /// The binding of a part of the expression.
    pub fn part(&self) -> Binding {
        match self {
            Binding::None => Binding::None,
            Binding::Whole(name) | Binding::Part(name) => Binding::Part(name.clone()),
        }
    }

    /// The binding that a pattern makes.
    pub fn pattern(pat: &Pat) -> Binding {
        match pat {
            Pat::Ident(pat) => Binding::Whole(text(&pat.ident)),
            Pat::Type(pat) => Binding::pattern(&pat.pat),
            Pat::Paren(pat) => Binding::pattern(&pat.pat),
            _ => Binding::None,
        }
    }

    /// The binding that a destination makes: `self.l` is `l`, `o.rows(..)` is `o`.
    pub fn destination(place: &Expr) -> Binding {
        last_name(place).map_or(Binding::None, Binding::Whole)
    }

    /// The field of a struct literal.
    pub fn field(member: &Member) -> Binding {
        match member {
            Member::Named(name) => Binding::Whole(name.unraw().to_string()),
            Member::Unnamed(_) => Binding::None,
        }
    }
}

fn last_name(place: &Expr) -> Option<String> {
    match place {
        Expr::Path(path) => path.path.segments.last().map(|segment| text(&segment.ident)),
        Expr::Field(field) => match &field.member {
            Member::Named(name) => Some(text(name)),
            Member::Unnamed(_) => last_name(&field.base),
        },
        Expr::MethodCall(call) => last_name(&call.receiver),
        Expr::Index(index) => last_name(&index.expr),
        Expr::Paren(paren) => last_name(&paren.expr),
        Expr::Group(group) => last_name(&group.expr),
        Expr::Reference(reference) => last_name(&reference.expr),
        Expr::Unary(unary) => last_name(&unary.expr),
        Expr::Try(inner) => last_name(&inner.expr),
        _ => None,
    }
}

/// The name of what a helper call calls: `acc.update(tl, ..)` is `update`.
pub fn callee(func: &Expr) -> Option<String> {
    match func {
        Expr::Path(path) => path.path.segments.last().map(|segment| text(&segment.ident)),
        Expr::Paren(paren) => callee(&paren.expr),
        _ => None,
    }
}
