//! Tensors in and out of safetensors files, and what is odd about them.

use super::text::plural;
use super::{Session, files};
use kernbench_core::diag::{Diagnostic, Failure};
use kernbench_core::ty::ElementType;
use kernbench_kernels::bench::HostArray;
use safetensors::tensor::TensorView;
use safetensors::{SafeTensorError, SafeTensors};
use std::path::Path;
use std::sync::Arc;

/// The name of an element type in a safetensors file.
fn dtype(ty: ElementType) -> safetensors::Dtype {
    match ty {
        ElementType::F16 => safetensors::Dtype::F16,
        ElementType::Bf16 => safetensors::Dtype::BF16,
        ElementType::F32 => safetensors::Dtype::F32,
        ElementType::I32 => safetensors::Dtype::I32,
        ElementType::I8 => safetensors::Dtype::I8,
        ElementType::U8 | ElementType::Mask => safetensors::Dtype::U8,
    }
}

/// `F16 [32, 128]`.
fn signature(ty: safetensors::Dtype, shape: &[usize]) -> String {
    format!("{ty} {shape:?}")
}

/// Reads the tensors that `wanted` describes.
///
/// # Errors
/// The file is no safetensors file, or a tensor is missing or not as wanted.
pub(super) fn read(
    path: &Path,
    wanted: &[HostArray],
    session: &mut Session<'_>,
) -> Result<Vec<HostArray>, Failure> {
    let bytes = files::read(path, "input file")?;
    let file = files::name(path);
    let wants: Vec<String> =
        wanted.iter().map(|w| format!("`{}` {}", w.name, signature(dtype(w.ty), &w.shape))).collect();
    let wants = wants.join(", ");
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| {
        let text = format!("input file `{file}` is {}", complaint(&error, bytes.len()));
        Diagnostic::error("KB0630", text).help(format!("write a safetensors file with {wants}"))
    })?;
    let mut found = vec![];
    let mut arrays = vec![];
    for want in wanted {
        match one(&file, &tensors, want) {
            Ok(array) => arrays.push(array),
            Err(d) => found.push(d),
        }
    }
    let mut extra: Vec<&str> = tensors.names();
    extra.retain(|name| wanted.iter().all(|w| w.name != *name));
    extra.sort_unstable();
    for name in extra {
        let text = format!("tensor `{name}` of `{file}` is not used");
        session.warnings.push(Diagnostic::warning("KB0634", text).help(format!("the bench reads {wants}")));
    }
    if found.is_empty() { Ok(arrays) } else { Err(Failure(found)) }
}

fn complaint(error: &SafeTensorError, len: usize) -> String {
    match error {
        SafeTensorError::MetadataIncompleteBuffer => {
            format!("cut short or padded: its {} are not those its header lists", plural(len as u64, "byte"))
        }
        SafeTensorError::HeaderTooSmall | SafeTensorError::InvalidHeaderLength => {
            format!(
                "no safetensors file, or cut short: it ends in its header, at {}",
                plural(len as u64, "byte")
            )
        }
        error => format!("no safetensors file: {error}"),
    }
}

fn one(file: &str, tensors: &SafeTensors<'_>, want: &HostArray) -> Result<HostArray, Diagnostic> {
    let (name, ty) = (&want.name, dtype(want.ty));
    let Ok(view) = tensors.tensor(name) else {
        let mut names: Vec<String> = tensors.names().iter().map(|n| format!("`{n}`")).collect();
        names.sort_unstable();
        let has = if names.is_empty() { "no tensor".to_owned() } else { names.join(", ") };
        return Err(Diagnostic::error("KB0631", format!("`{file}` has no tensor `{name}`: it has {has}"))
            .help(format!("add `{name}`, {}", signature(ty, &want.shape))));
    };
    if view.dtype() != ty {
        let text = format!("tensor `{name}` of `{file}` has elements of {}, not {ty}", view.dtype());
        return Err(Diagnostic::error("KB0632", text)
            .help(format!("convert it to {ty}, or set the bench's parameter `dtype`")));
    }
    if view.shape() != want.shape {
        let text = format!("tensor `{name}` of `{file}` has shape {:?}, not {:?}", view.shape(), want.shape);
        return Err(
            Diagnostic::error("KB0633", text).help("reshape it, or set the bench's parameters to its sizes")
        );
    }
    Ok(HostArray { bytes: Arc::new(view.data().to_vec()), ..want.clone() })
}

/// Writes arrays in their element types.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(path: &Path, arrays: &[HostArray]) -> Result<(), Failure> {
    let views = arrays.iter().map(|array| {
        let view = TensorView::new(dtype(array.ty), array.shape.clone(), &array.bytes)?;
        Ok((array.name.as_str(), view))
    });
    let bytes = views
        .collect::<Result<Vec<_>, SafeTensorError>>()
        .and_then(|views| safetensors::serialize(views, None))
        .map_err(|e| {
            Diagnostic::error("KB0617", format!("output file `{}` cannot be written: {e}", files::name(path)))
                .help("a bench's output must have as many values as its shape says")
        })?;
    files::write_whole(path, &bytes)
}

/// The values of one input that are no finite numbers.
#[derive(serde::Serialize)]
pub(super) struct Odd {
    pub(super) tensor: String,
    pub(super) nan: u64,
    pub(super) infinite: u64,
    /// The place of the first of them, an index for each axis.
    pub(super) first: Vec<usize>,
}

/// The inputs that hold NaN or infinity; integers hold neither.
pub(super) fn odd(arrays: &[HostArray]) -> Vec<Odd> {
    /// Elements widened at a time.
    const CHUNK: usize = 1024;
    let of = |array: &HostArray| {
        let mut values = [0.0; CHUNK];
        let (mut nan, mut infinite, mut first) = (0, 0, None);
        for (i, bytes) in array.bytes.chunks(CHUNK * array.ty.bytes() as usize).enumerate() {
            if are_finite(array.ty, bytes) {
                continue;
            }
            let values = &mut values[..bytes.len() / array.ty.bytes() as usize];
            array.ty.widen(bytes, values);
            let count = |f: fn(f32) -> bool| values.iter().filter(|x| f(**x)).count() as u64;
            (nan, infinite) = (nan + count(f32::is_nan), infinite + count(f32::is_infinite));
            first = first.or(values.iter().position(|x| !x.is_finite()).map(|at| i * CHUNK + at));
        }
        Some(Odd { tensor: array.name.clone(), nan, infinite, first: index(first?, &array.shape) })
    };
    arrays.iter().filter_map(of).collect()
}

/// Whether no exponent is all ones. Nearly all inputs are finite, so this is what takes the time.
fn are_finite(ty: ElementType, bytes: &[u8]) -> bool {
    let half = |mask: u16| {
        let all_ones = |b: &[u8; 2]| u16::from_le_bytes(*b) & mask == mask;
        !bytes.as_chunks().0.iter().fold(false, |any, b| any | all_ones(b))
    };
    match ty {
        ElementType::F16 => half(0x7C00),
        ElementType::Bf16 => half(0x7F80),
        ElementType::F32 => {
            let all_ones = |b: &[u8; 4]| u32::from_le_bytes(*b) & 0x7F80_0000 == 0x7F80_0000;
            !bytes.as_chunks().0.iter().fold(false, |any, b| any | all_ones(b))
        }
        ElementType::I32 | ElementType::I8 | ElementType::U8 | ElementType::Mask => true,
    }
}

/// The index along each axis of a position in row-major order.
pub(super) fn index(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&n| {
            let i = at % n.max(1);
            at /= n.max(1);
            i
        })
        .collect();
    index.reverse();
    index
}
