//! The outside suite of attention cases, and what `conform` says of cases that are wrong.

use crate::cli::kernbench;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::fs;

#[test]
fn every_case_of_the_suite_passes() {
    let summary = kernbench("conform conformance/onnx_attention --json").json();
    let failed: Vec<_> =
        summary["cases"].as_array().unwrap().iter().filter(|row| row["passed"] != true).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!((summary["passed"].as_u64(), summary["failed"].as_u64()), (Some(58), Some(0)));
}

/// Name, type and shape.
type Entry<'a> = (&'a str, Dtype, &'a [usize]);

/// A folder with one case: the manifest's entry, and tensors of zeros.
fn folder(manifest: &str, tensors: &[Entry]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("manifest.json"), manifest).unwrap();
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|(_, ty, shape)| vec![0; shape.iter().product::<usize>() * ty.bitsize() / 8])
        .collect();
    let views: Vec<_> = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, ty, shape), bytes)| (*name, TensorView::new(*ty, shape.to_vec(), bytes).unwrap()))
        .collect();
    safetensors::serialize_to_file(views, None, &folder.path().join("c.safetensors")).unwrap();
    folder
}

#[test]
fn cases_that_cannot_be_run_say_why() {
    let q: Entry = ("in.Q", Dtype::F32, &[1, 2, 3, 4]);
    let (k, v) = (("in.K", q.1, q.2), ("in.V", q.1, q.2));
    let entry = |attributes: &str| {
        format!(r#"{{"cases": [{{"case": "c", "attributes": {attributes}, "rtol": 0.1, "atol": 0.1}}]}}"#)
    };
    let short: &[usize] = &[3, 12];
    let table: [(&str, Vec<Entry>); 8] = [
        ("{}", vec![]),
        ("{}", vec![q, k]),
        (r#"{"rotary": 1}"#, vec![q, k, v]),
        (
            r#"{"qk_matmul_output_mode": 7}"#,
            vec![q, k, v, ("out.qk_matmul_output", Dtype::F32, &[1, 2, 3, 3])],
        ),
        ("{}", vec![(q.0, Dtype::F64, q.2), k, v]),
        ("{}", vec![q, (k.0, Dtype::F16, k.2), v]),
        ("{}", vec![(q.0, q.1, short), k, v]),
        ("{}", vec![q, k, v, ("in.attn_mask", Dtype::F32, &[2, 3])]),
    ];
    let mut said = String::new();
    for (attributes, tensors) in table {
        let folder = folder(&entry(attributes), &tensors);
        let ran = kernbench(&format!("conform {}", folder.path().display()));
        assert_eq!(ran.code, Some(1));
        said += ran.out.lines().nth(1).unwrap();
        said += "\n";
    }
    insta::assert_snapshot!(said, @"
    c      FAILED       -       -   it has no `in.Q`
    c      FAILED       -       -   it has no `in.V`
    c      FAILED       -       -   attribute `rotary` is not known
    c      FAILED       -       -   qk_matmul_output_mode 7 is not known
    c      FAILED       -       -   elements of F64 are not computed with: f16, bf16 and f32 are
    c      FAILED       -       -   `in.K` is of type F16, not F32 as `in.Q`
    c      FAILED       -       -   `in.Q` of 2 dimensions: 3 or 4 are known
    c      FAILED       -       -   a mask of shape [2, 3] does not broadcast to [1, 2, 3, 3]
    ");
    let wrong = folder(&entry("{}").replace("rtol", "tol"), &[]);
    let ran = kernbench(&format!("conform {}", wrong.path().display()));
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.err.replace(&wrong.path().display().to_string(), "DIR"), @r#"
    error[KB0663]: manifest `DIR/manifest.json` is not as expected: missing field `rtol` at line 1 column 67
     |
     = help: write `{"cases": [{case, opset, attributes, bool_mask, tensors, rtol, atol}]}`

    1 error; run `kernbench explain KB0663` for more
    "#);
}

/// An output that is not right fails, with its place.
#[test]
fn a_wrong_output_fails() {
    let shape: &[usize] = &[1, 1, 2, 2];
    let out: Entry = ("out.Y", Dtype::F32, &[1, 1, 2, 3]);
    let tensors =
        [("in.Q", Dtype::F32, shape), ("in.K", Dtype::F32, shape), ("in.V", Dtype::F32, shape), out];
    let folder = folder(r#"{"cases": [{"case": "c", "rtol": 0.1, "atol": 0.1}]}"#, &tensors);
    let ran = kernbench(&format!("conform {} --json", folder.path().display()));
    assert_eq!(ran.code, Some(1));
    let summary: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    insta::assert_snapshot!(summary["cases"][0]["reason"], @r#""out.Y has 4 elements, not 6""#);
}
