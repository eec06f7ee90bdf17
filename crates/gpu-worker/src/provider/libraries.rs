//! The libraries that a device's provider needs beside the runtime: where packages put them, and what to do when one is
//! missing.
//!
//! The runtime loads them by name, so the loader's own path (`LD_LIBRARY_PATH`) always counts. What lies where pip puts it
//! beside the runtime is found without that: it is loaded before, and then already there under its name. Which versions are
//! needed depends on the runtime, so names are taken from what is there.

use std::path::{Path, PathBuf};

use super::Provider;

/// Folders of a Python's packages, in which pip's packages of CUDA, cuDNN and TensorRT put their libraries.
const PACKAGES: [&str; 3] = ["nvidia", "tensorrt_libs", "tensorrt_cu13_libs"];
/// What CUDA's provider needs, in the order in which they need each other. Versions follow the name.
const CUDA: [&str; 15] = [
    "libcudart.so.",
    "libnvJitLink.so.",
    "libcublasLt.so.",
    "libcublas.so.",
    "libnvrtc.so.",
    "libcurand.so.",
    "libcufft.so.",
    "libcudnn.so.",
    "libcudnn_graph.so.",
    "libcudnn_ops.so.",
    "libcudnn_heuristic.so.",
    "libcudnn_adv.so.",
    "libcudnn_cnn.so.",
    "libcudnn_engines_precompiled.so.",
    "libcudnn_engines_runtime_compiled.so.",
];
/// What TensorRT's needs on top.
const TENSORRT: [&str; 3] = ["libnvinfer.so.", "libnvinfer_plugin.so.", "libnvonnxparser.so."];

/// Loads what lies beside the runtime `library`. What cannot be loaded is left to the provider, which says so.
pub(super) fn preload(library: &Path, provider: Provider) {
    for path in beside(library, provider) {
        match ort::util::preload_dylib(&path) {
            Ok(()) => tracing::debug!(library = %path.display(), "a library of the device was loaded"),
            Err(error) => tracing::debug!(library = %path.display(), %error, "a library of the device was not loaded"),
        }
    }
}

/// Of a provider's libraries, those beside the runtime, in the order in which they need each other.
fn beside(library: &Path, provider: Provider) -> Vec<PathBuf> {
    // SITE/onnxruntime/capi/libonnxruntime.so.1: packages lie in SITE.
    let Some(site) = library.ancestors().nth(3) else { return Vec::new() };
    let there: Vec<PathBuf> = PACKAGES.iter().flat_map(|package| libraries_in(&site.join(package))).collect();
    let named = |prefix: &&str| {
        let found = there.iter().find(|path| file_name(path).is_some_and(|name| name.starts_with(prefix)));
        found.cloned()
    };
    let wanted: &[&[&str]] = match provider {
        Provider::Cpu => &[],
        Provider::Cuda => &[&CUDA],
        Provider::TensorRt => &[&CUDA, &TENSORRT],
    };
    wanted.iter().flat_map(|names| names.iter().filter_map(named)).collect()
}

/// The libraries of a package: in its folder, in the `lib` folders of those in it.
fn libraries_in(package: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| {
        let read = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut paths: Vec<PathBuf> = read.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let here = entries(package);
    let inside = here.iter().flat_map(|folder| entries(&folder.join("lib")));
    let all = inside.chain(here.iter().cloned());
    all.filter(|path| file_name(path).is_some_and(|name| name.contains(".so."))).collect()
}

fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// What the runtime said, in one line and without the place in its source that said so.
pub(super) fn in_short(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().collect();
    let line = words.join(" ");
    match (line.find("/onnxruntime_src/"), line.find(": FAIL : ")) {
        (Some(from), Some(to)) if from < to => {
            let (before, after) = (line.get(..from).unwrap_or_default(), line.get(to + ": FAIL : ".len()..));
            format!("{before}{}", after.unwrap_or_default())
        }
        _ => line,
    }
}

/// What to do about it.
pub(super) fn mend(reason: &str) -> &'static str {
    let names = |names: &[&str]| names.iter().any(|name| reason.contains(name));
    if names(&["libcuda.so"]) {
        return "install the driver of the graphics processor";
    }
    if names(&["driver version is insufficient", "CUDA_ERROR", "no CUDA-capable device", "invalid device ordinal"]) {
        return "see with `nvidia-smi` that the driver is new enough and which devices there are";
    }
    if names(&["libnvinfer", "libnvonnxparser"]) {
        return "install TensorRT in the version that the library's name says, where the loader finds it or with pip beside \
                the runtime";
    }
    if names(&["libcu", "libnvrtc", "libnvJitLink"]) {
        return "install CUDA and cuDNN in the versions that the library's name says, where the loader finds them or with \
                `pip install onnxruntime-gpu[cuda,cudnn]` beside the runtime";
    }
    "mend its driver and libraries"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packages as pip lays them, with a runtime.
    fn site(name: &str) -> PathBuf {
        let site = std::env::temp_dir().join(format!("rollcall-site-{name}-{}", std::process::id()));
        for file in [
            "onnxruntime/capi/libonnxruntime.so.1.31.1",
            "nvidia/cu13/lib/libcublas.so.13",
            "nvidia/cu13/lib/libcublasLt.so.13",
            "nvidia/cu13/lib/libcudart.so.13",
            "nvidia/cu13/lib/libcudart_static.a",
            "nvidia/cudnn/lib/libcudnn.so.9",
            "nvidia/cudnn/lib/libcudnn_ops.so.9",
            "tensorrt_libs/libnvinfer.so.10",
        ] {
            let path = site.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        site
    }

    #[test]
    fn libraries_are_found_where_pip_puts_them_and_in_the_order_in_which_they_need_each_other() {
        let site = site("found");
        let names = |provider| -> Vec<String> {
            let found = beside(&site.join("onnxruntime/capi/libonnxruntime.so.1.31.1"), provider);
            found.iter().map(|path| file_name(path).unwrap().to_owned()).collect()
        };
        let cuda = ["libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9", "libcudnn_ops.so.9"];
        assert_eq!(names(Provider::Cuda), cuda);
        assert_eq!(names(Provider::TensorRt), [&cuda[..], &["libnvinfer.so.10"]].concat());
        assert!(names(Provider::Cpu).is_empty());
        assert!(beside(Path::new("/lib.so"), Provider::Cuda).is_empty());
        std::fs::remove_dir_all(site).unwrap();
    }

    #[test]
    fn files_that_are_no_libraries_do_no_harm() {
        let site = site("harmless");
        preload(&site.join("onnxruntime/capi/libonnxruntime.so.1.31.1"), Provider::TensorRt);
        std::fs::remove_dir_all(site).unwrap();
    }

    #[test]
    fn what_the_runtime_says_is_one_line_with_a_mend() {
        let said = "cannot load `m.onnx`: /onnxruntime_src/onnxruntime/core/session/provider_bridge_ort.cc:2043 \
                    onnxruntime::Provider& onnxruntime::ProviderLibrary::Get() [ONNXRuntimeError] : 1 : FAIL : Failed to \
                    load library libonnxruntime_providers_cuda.so with error: libcublasLt.so.13: cannot open shared \
                    object file: No such file or directory\n";
        let short = in_short(said);
        assert!(short.starts_with("cannot load `m.onnx`: Failed to load library") && !short.contains('\n'), "{short}");
        assert!(mend(&short).contains("onnxruntime-gpu[cuda,cudnn]"));
        assert!(mend("error: libcuda.so.1: cannot open").contains("driver"));
        assert!(mend("error: libnvinfer.so.10: cannot open").contains("TensorRT"));
        assert!(mend("CUDA failure 35: CUDA driver version is insufficient").contains("nvidia-smi"));
        assert_eq!(in_short("it is\n  odd"), "it is odd");
    }
}
