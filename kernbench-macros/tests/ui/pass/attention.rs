//! The helpers and the two kernels of the language reference.
use kernbench::prelude::*;

/// What both kernels need to know about the problem.
#[derive(Clone, Copy, Debug)]
pub struct Gqa {
    pub h_q: usize,
    pub d: usize,
    pub s_kv: usize,
    pub t_q: usize,
    pub scale: f32,
}

/// The running softmax of flash attention: row maximum, row sum, weighted values.
#[derive(Clone, Copy)]
pub struct Softmax<'s> {
    m: Tile<'s, f32>,
    l: Tile<'s, f32>,
    o: Tile<'s, f32>,
}

impl Softmax<'_> {
    /// The partial of no keys.
    #[device]
    pub fn empty(tl: &Scope, rows: usize, d: usize) -> Softmax<'_> {
        Softmax { m: tl::full([rows, 1], f32::NEG_INFINITY), l: tl::zeros([rows, 1]), o: tl::zeros([rows, d]) }
    }

    /// Folds a block of scores and its values in.
    #[device]
    pub fn update<T: Float>(self, tl: &Scope, s: Expr<f32>, v: Tile<T>) {
        let s = tl::eval(s);
        let m = tl::max(tl::maximum(self.m, s), Axis::Cols);
        let shift = finite(tl, m);
        let p = tl::eval(tl::exp(s - shift));
        let alpha = tl::eval(tl::exp(self.m - shift));
        tl::copy_to(self.l, self.l * alpha + tl::sum(p, Axis::Cols));
        let p = tl::eval(p.cast::<T>());
        tl::copy_to(self.o, self.o * alpha + tl::dot(p, v));
        tl::copy_to(self.m, m);
    }

    /// Sends the partial to a neighbour.
    #[device]
    pub fn send(self, tl: &Scope, to: Dir) {
        tl::send(to, self.m);
        tl::send(to, self.l);
        tl::send(to, self.o);
    }

    /// A partial of the same shape from a neighbour.
    #[device]
    pub fn recv(self, tl: &Scope, from: Dir) -> Softmax<'_> {
        Softmax { m: tl::recv(from, self.m.shape()), l: tl::recv(from, self.l.shape()), o: tl::recv(from, self.o.shape()) }
    }

    /// The attention output; 0 in a row without keys.
    #[device]
    pub fn output<T: Float>(self, tl: &Scope) -> Tile<'_, T> {
        tl::eval(tl::select(tl::gt(self.l, 0.0), self.o / self.l, 0.0).cast())
    }
}

/// `m`, or 0 where `m` is -inf: a row without keys must not become NaN.
#[device]
fn finite(tl: &Scope, m: Tile<f32>) -> Tile<'_, f32> {
    tl::eval(tl::select(tl::gt(m, f32::NEG_INFINITY), m, 0.0))
}

/// Decode, with the partial of a neighbour.
#[kernel]
pub fn decode<T: Float>(
    /// (h_q, d), replicated.
    q: In<T>,
    k: In<T>,
    v: In<T>,
    o: Out<T>,
    from: Vec<Dir>,
    to: Option<Dir>,
    a: Gqa,
) {
    let q = tl::load(q);
    let acc = Softmax::empty(tl, q.nrows(), a.d);
    for keys in Block::new(tl::pe() * a.s_kv, a.s_kv).blocks(64) {
        scratch_scope!(buffers = 2, {
            let kt = tl::load(k.rows(keys));
            let vt = tl::load(v.rows(keys));
            let s = tl::dot(q, kt.t());
            acc.update(tl, s * a.scale, vt);
        });
    }
    for from in from {
        scratch_scope!({
            let other = acc.recv(tl, from);
            tl::copy_to(acc.l, acc.l + other.l);
        });
    }
    match to {
        Some(to) => acc.send(tl, to),
        None => tl::store(o, acc.output::<T>(tl)),
    }
}

/// Flash-attention prefill of one head, causal (top-left).
#[kernel]
pub fn flash_prefill<T: Float>(q: In<T>, k: In<T>, v: In<T>, o: Out<T>, a: Gqa) {
    for rows in Block::new(0, a.t_q).blocks(32) {
        scratch_scope!({
            let q = tl::load(q.rows(rows));
            let q_pos = tl::arange(rows, Axis::Rows);
            let acc = Softmax::empty(tl, q.nrows(), a.d);
            for keys in Block::new(0, a.s_kv).blocks(64) {
                if keys.start >= rows.end() {
                    break;
                }
                scratch_scope!(buffers = 2, {
                    let kt = tl::load(k.rows(keys));
                    let vt = tl::load(v.rows(keys));
                    let s = tl::dot(q, kt.t()) * a.scale;
                    if keys.end() <= rows.start {
                        acc.update(tl, s, vt);
                        continue;
                    }
                    let k_pos = tl::arange(keys, Axis::Cols);
                    acc.update(tl, tl::select(tl::ge(q_pos, k_pos), s, f32::NEG_INFINITY), vt);
                });
            }
            tl::store(o.rows(rows), acc.output::<T>(tl));
        });
    }
}

fn main() {}
