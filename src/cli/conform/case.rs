//! A case of the operator Attention of ONNX: what it asks for, its run, and how far off it is.

use crate::cli::files;
use crate::cli::inputs::index;
use kernbench_core::diag::Failure;
use kernbench_core::host::{Context, LaunchOptions};
use kernbench_core::topology::Topology;
use kernbench_core::ty::{ElementType, Float, bf16, f16};
use kernbench_kernels::attention::{Align, Arrays, Layout, Spec, Stage, attention_of};
use kernbench_kernels::bench::HostArray;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A case as the manifest lists it.
#[derive(Deserialize)]
pub(super) struct Case {
    pub case: String,
    #[serde(default)]
    attributes: BTreeMap<String, f64>,
    #[serde(default)]
    bool_mask: bool,
    rtol: f64,
    atol: f64,
}

/// The element that is furthest off, beside its bound.
pub(super) struct Worst {
    pub passed: bool,
    pub error: f64,
    pub bound: f64,
    pub at: String,
    pub reason: String,
}

/// The attributes that are understood.
const ATTRIBUTES: [&str; 9] = [
    "is_causal",
    "kv_num_heads",
    "left_window_size",
    "q_num_heads",
    "qk_matmul_output_mode",
    "right_window_size",
    "scale",
    "softcap",
    "softmax_precision",
];

impl Case {
    /// Runs it on the default machine.
    ///
    /// # Errors
    /// Why it cannot be expressed.
    pub fn run(&self, directory: &Path) -> Result<Worst, String> {
        let path = directory.join(format!("{}.safetensors", self.case));
        let bytes = files::read(&path, "case").map_err(|e| said(&e))?;
        let file =
            SafeTensors::deserialize(&bytes).map_err(|e| format!("its file is no safetensors file: {e}"))?;
        if let Some(unknown) = self.attributes.keys().find(|key| !ATTRIBUTES.contains(&key.as_str())) {
            return Err(format!("attribute `{unknown}` is not known"));
        }
        let ty = file.tensor("in.Q").map_err(|_| "it has no `in.Q`".to_owned())?.dtype();
        match float_type(ty) {
            Some(ElementType::F16) => self.run_in::<f16>(&file),
            Some(ElementType::Bf16) => self.run_in::<bf16>(&file),
            Some(_) => self.run_in::<f32>(&file),
            None => Err(format!("elements of {ty} are not computed with: f16, bf16 and f32 are")),
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.attributes.get(key).copied()
    }

    fn run_in<T: Float>(&self, file: &SafeTensors) -> Result<Worst, String> {
        let array = |name: &str, ty: ElementType| array(file, name, ty);
        let need = |name: &str| array(name, T::TYPE)?.ok_or_else(|| format!("it has no `{name}`"));
        let (q, k, v) = (need("in.Q")?, need("in.K")?, need("in.V")?);
        let (past_k, past_v) = (array("in.past_key", T::TYPE)?, array("in.past_value", T::TYPE)?);
        let past = past_k.as_ref().zip(past_v.as_ref()).map(|(k, v)| [k, v]);
        let heads = |x: &HostArray, key: &str| heads(x, self.number(key), key);
        let ([batch, q_heads, queries, d], layout) = heads(&q, "q_num_heads")?;
        let ([k_batch, kv_heads, new, k_d], kv_layout) = heads(&k, "kv_num_heads")?;
        let ([v_batch, v_heads, v_new, d_v], v_layout) = heads(&v, "kv_num_heads")?;
        let fits = k_batch == batch && v_batch == batch && k_d == d && v_heads == kv_heads && v_new == new;
        if !fits || kv_heads == 0 || !q_heads.is_multiple_of(kv_heads) || v_layout != kv_layout {
            return Err(format!("shapes {:?}, {:?} and {:?} do not fit together", q.shape, k.shape, v.shape));
        }
        let old = past.map_or(0, |[k, _]| k.shape.get(2).copied().unwrap_or(0));
        if past.is_some_and(|[k, v]| {
            k.shape != [batch, kv_heads, old, d] || v.shape != [batch, kv_heads, old, d_v]
        }) {
            return Err("the past does not have the shape of the keys and values".to_owned());
        }
        let has_cache = past.is_some() || file.tensor("out.present_key").is_ok();
        let lengths = lengths(file, batch)?;
        let mut a = Spec::new(batch, [q_heads, kv_heads], [queries, old + new], [d, d_v]);
        a.q_layout = layout;
        a.kv_layout = if has_cache { Layout::HeadsFirst } else { kv_layout };
        a.causal = self.number("is_causal").is_some_and(|x| x != 0.0);
        let window = |key| self.number(key).filter(|x| *x >= 0.0).map(|x| x as usize);
        a.window = [window("left_window_size"), window("right_window_size")];
        a.softcap = self.number("softcap").unwrap_or(0.0) as f32;
        a.align = if lengths.is_some() { Align::BottomRight } else { Align::Offset(old as i64) };
        if let Some(scale) = self.number("scale") {
            a.scale = scale as f32;
        }
        let mask = match file.tensor("in.attn_mask").map(|mask| mask.dtype()) {
            Ok(ty) if !self.bool_mask => float_type(ty)
                .ok_or_else(|| {
                    format!("`in.attn_mask` is of type {ty}: f16, bf16, f32 and booleans are known")
                })
                .and_then(|ty| array("in.attn_mask", ty))?
                .map(|mask| {
                    let values: Vec<T> = mask.floats().into_iter().map(T::from_f32).collect();
                    HostArray::new("mask", &mask.shape, &values)
                }),
            _ => array("in.attn_mask", ElementType::U8)?,
        };
        if let Some(mask) = &mask {
            a.mask = mask_shape(&mask.shape, [batch, q_heads, queries, old + new])?;
        }
        let scores = match file.tensor("out.qk_matmul_output") {
            Err(_) => None,
            Ok(_) => Some(match self.number("qk_matmul_output_mode").unwrap_or(0.0) as i64 {
                0 => Stage::Product,
                1 => Stage::Capped,
                2 => Stage::Masked,
                3 => Stage::Weights,
                mode => return Err(format!("qk_matmul_output_mode {mode} is not known")),
            }),
        };
        let arrays = Arrays {
            q: &q,
            k: &k,
            v: &v,
            past,
            new: has_cache.then_some(kv_layout),
            add: mask.as_ref().filter(|_| !self.bool_mask),
            allow: mask.as_ref().filter(|_| self.bool_mask),
            lengths: lengths.as_deref(),
            sinks: None,
            scores,
        };
        let ctx = Context::new(Topology::default_machine());
        let answer = attention_of::<T>(&ctx, &a, &arrays, &LaunchOptions::default()).map_err(|e| said(&e))?;
        let mut worst =
            Worst { passed: true, error: 0.0, bound: self.atol, at: String::new(), reason: String::new() };
        let mut compare = |name: &str, got: Option<&HostArray>| {
            let Some(want) = array(name, T::TYPE)? else { return Ok::<_, String>(()) };
            let got = got.ok_or_else(|| format!("`{name}` is not computed"))?;
            self.compare(name, got, &want, &mut worst);
            Ok(())
        };
        compare("out.Y", Some(&answer.y))?;
        compare("out.present_key", answer.present.as_ref().map(|p| &p[0]))?;
        compare("out.present_value", answer.present.as_ref().map(|p| &p[1]))?;
        compare("out.qk_matmul_output", answer.scores.as_ref())?;
        Ok(worst)
    }

    /// Keeps the element whose error is the largest part of its bound.
    fn compare(&self, name: &str, got: &HostArray, want: &HostArray, worst: &mut Worst) {
        let (got, wants) = (got.floats(), want.floats());
        if got.len() != wants.len() {
            worst.passed = false;
            worst.reason = format!("{name} has {} elements, not {}", got.len(), wants.len());
            return;
        }
        let shape = &want.shape;
        for (i, (got, want)) in
            got.iter().zip(&wants).map(|(g, w)| (f64::from(*g), f64::from(*w))).enumerate()
        {
            let same = got == want || got.is_nan() && want.is_nan();
            let bound = self.atol + self.rtol * if want.is_finite() { want.abs() } else { 0.0 };
            let error = if same { 0.0 } else { (got - want).abs() };
            let error = if error.is_nan() { f64::INFINITY } else { error };
            let fails = error > bound;
            if worst.at.is_empty() || fails && worst.passed || error / bound > worst.error / worst.bound {
                worst.passed &= !fails;
                (worst.error, worst.bound) = (error, bound);
                worst.at = format!("{name}{:?}", index(i, shape));
                worst.reason = format!("{}: got {got:e}, want {want:e}", worst.at);
            }
        }
    }
}

fn said(failure: &Failure) -> String {
    failure.0.first().map(|d| format!("{}: {}", d.code, d.message)).unwrap_or_default()
}

fn float_type(ty: Dtype) -> Option<ElementType> {
    match ty {
        Dtype::F16 => Some(ElementType::F16),
        Dtype::BF16 => Some(ElementType::Bf16),
        Dtype::F32 => Some(ElementType::F32),
        _ => None,
    }
}

/// A tensor of the file, if it is there.
fn array(file: &SafeTensors, name: &str, ty: ElementType) -> Result<Option<HostArray>, String> {
    let Ok(view) = file.tensor(name) else { return Ok(None) };
    let want = match ty {
        ElementType::F16 => Dtype::F16,
        ElementType::Bf16 => Dtype::BF16,
        ElementType::F32 => Dtype::F32,
        _ => Dtype::U8,
    };
    if view.dtype() != want {
        return Err(format!("`{name}` is of type {}, not {want} as `in.Q`", view.dtype()));
    }
    let bytes = Arc::new(view.data().to_vec());
    Ok(Some(HostArray { name: name.to_owned(), ty, shape: view.shape().to_vec(), bytes }))
}

/// Batch, heads, length and head size of an array of three or four dimensions.
fn heads(x: &HostArray, heads: Option<f64>, key: &str) -> Result<([usize; 4], Layout), String> {
    match (&x.shape[..], heads) {
        (&[b, h, n, d], _) => Ok(([b, h, n, d], Layout::HeadsFirst)),
        (&[b, n, all], Some(h)) if h >= 1.0 && all.is_multiple_of(h as usize) => {
            Ok(([b, h as usize, n, all / h as usize], Layout::TokensFirst))
        }
        (&[_, _, all], _) => {
            Err(format!("`{}` of {all} columns needs an attribute `{key}` that divides them", x.name))
        }
        (shape, _) => Err(format!("`{}` of {} dimensions: 3 or 4 are known", x.name, shape.len())),
    }
}

/// Batches, heads, queries and columns of a mask.
fn mask_shape(shape: &[usize], full: [usize; 4]) -> Result<[usize; 4], String> {
    let mut mask = [1; 4];
    if shape.is_empty() || shape.len() > 4 {
        return Err(format!("a mask of {} dimensions: 1 to 4 are known", shape.len()));
    }
    mask[4 - shape.len()..].copy_from_slice(shape);
    let fits = (0..3).all(|i| mask[i] == 1 || mask[i] == full[i]) && mask[3] <= full[3];
    if fits { Ok(mask) } else { Err(format!("a mask of shape {shape:?} does not broadcast to {full:?}")) }
}

/// How many keys of each batch count.
fn lengths(file: &SafeTensors, batch: usize) -> Result<Option<Vec<i32>>, String> {
    let Ok(view) = file.tensor("in.nonpad_kv_seqlen") else { return Ok(None) };
    if view.dtype() != Dtype::I64 || view.shape() != [batch] {
        return Err("`in.nonpad_kv_seqlen` is not an i64 for each batch".to_owned());
    }
    let number = |bytes: &[u8]| bytes.try_into().map(i64::from_le_bytes).unwrap_or(0);
    Ok(Some(view.data().chunks_exact(8).map(|b| number(b).clamp(0, i64::from(i32::MAX)) as i32).collect()))
}
