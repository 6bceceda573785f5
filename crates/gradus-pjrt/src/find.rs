//! Where plugins are looked for: what the environment says, a path, then the packages of Python. Nothing is ever downloaded.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::error::{Result, error};

/// The variable that names plugins: a path, or a list of `name=path` with colons or commas between.
pub const VARIABLE: &str = "GRADUS_PJRT_PLUGIN";

/// What packages call their plugin, by the name that users give a platform: folders below `site-packages` and the start of the file's name. The first that is
/// found is taken.
struct Known {
    name: &'static str,
    places: &'static [(&'static str, &'static str)],
    install: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        name: "cpu",
        places: &[("xla_plugins/xla_cpu_pjrt", "xla_cpu_pjrt"), ("xla_cpu_pjrt", "xla_cpu_pjrt")],
        install: "pip install xla-cpu-pjrt",
    },
    Known {
        name: "cuda",
        places: &[
            ("jax_plugins/xla_cuda13", "xla_cuda_plugin"),
            ("jax_plugins/xla_cuda12", "xla_cuda_plugin"),
            ("xla_plugins/xla_cuda13_pjrt", "xla_cuda"),
            ("xla_plugins/xla_cuda12_pjrt", "xla_cuda"),
        ],
        install: "pip install 'jax-cuda13-pjrt' 'jax-cuda13-plugin[with-cuda]'",
    },
    Known { name: "tpu", places: &[("libtpu", "libtpu")], install: "pip install libtpu" },
    Known {
        name: "rocm",
        places: &[("jax_plugins/xla_rocm7", "xla_rocm_plugin")],
        install: "pip install jax-rocm7-pjrt",
    },
    Known { name: "mps", places: &[("jax_plugins/mps", "")], install: "pip install jax-mps" },
];

/// The file of a plugin: a path, or the name of a platform.
pub(crate) fn find(name: &str) -> Result<PathBuf> {
    find_in(name, std::env::var(VARIABLE).ok().as_deref(), &site_packages())
}

fn is_path(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || name.contains('/') || name.ends_with(".so") || name.ends_with(".dylib")
}

fn find_in(name: &str, variable: Option<&str>, folders: &[PathBuf]) -> Result<PathBuf> {
    if is_path(name) {
        let path = Path::new(name);
        return match path.is_file() {
            true => Ok(path.to_path_buf()),
            false => Err(error!(Device, "there is no file {name}, which was to be a PJRT plugin")),
        };
    }
    let mut looked = Vec::new();
    match variable.and_then(|v| named(v, name)) {
        Some(path) if path.is_file() => return Ok(path),
        // Another plugin than the one that was asked for would be what nobody wants.
        Some(path) => {
            return Err(error!(
                Device,
                "{VARIABLE} says that the plugin `{name}` is {}, which is no file",
                path.display()
            )
            .help(format!("correct {VARIABLE}, or unset it to have the packages of Python looked at")));
        }
        None => looked.push(format!("{VARIABLE} says nothing about it")),
    }
    let known = KNOWN.iter().find(|k| k.name == name);
    for folder in folders {
        if let Some(path) =
            known.and_then(|k| k.places.iter().find_map(|(sub, start)| library(&folder.join(sub), start)))
        {
            return Ok(path);
        }
        looked.push(folder.display().to_string());
    }
    if folders.is_empty() {
        looked.push("no `site-packages` of a Python, by VIRTUAL_ENV or `python3`".into());
    }
    let mut missing = error!(Device, "no PJRT plugin `{name}` was found");
    for place in looked {
        missing = missing.note(format!("looked at: {place}"));
    }
    Err(match known {
        Some(k) => missing.help(format!("`{}`, or set {VARIABLE} to the plugin's file", k.install)),
        None => {
            let names: Vec<&str> = KNOWN.iter().map(|k| k.name).collect();
            missing.help(format!("give a path, one of {}, or set {VARIABLE}=\"{name}=PATH\"", names.join(", ")))
        }
    })
}

/// The path that the variable gives for a name. A path without a name is for every name but those that the list gives.
fn named(variable: &str, name: &str) -> Option<PathBuf> {
    let mut plain = None;
    for entry in variable.split([',', ':']).map(str::trim).filter(|e| !e.is_empty()) {
        match entry.split_once('=') {
            Some((n, path)) if n.trim() == name => return Some(path.trim().into()),
            Some(_) => {}
            None => plain = plain.or_else(|| fits(entry, name).then(|| entry.into())),
        }
    }
    plain
}

/// Whether a path without a name may be the plugin of this name: not if it is plainly another one's.
fn fits(path: &str, name: &str) -> bool {
    let file = Path::new(path).file_name().map(|f| f.to_string_lossy().to_lowercase()).unwrap_or_default();
    let others = KNOWN.iter().filter(|k| k.name != name);
    file.contains(name) || !others.clone().any(|k| file.contains(k.name))
}

/// The shared library in a folder whose name starts so; the first by name where there are several.
fn library(folder: &Path, start: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|f| f.path());
    let fits = |p: &PathBuf| {
        let name = p.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with(start) && (name.ends_with(".so") || name.ends_with(".dylib"))
    };
    files.filter(fits).min()
}

/// The folders where Python has its packages: those of the virtual environment first.
fn site_packages() -> Vec<PathBuf> {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let mut all = Vec::new();
    if let Some(root) = std::env::var_os("VIRTUAL_ENV").filter(|v| !v.is_empty()) {
        for lib in ["lib", "lib64"] {
            let versions = std::fs::read_dir(Path::new(&root).join(lib)).into_iter().flatten().flatten();
            all.extend(versions.map(|v| v.path().join("site-packages")).filter(|p| p.is_dir()));
        }
    }
    // A process of its own, which costs tens of milliseconds: once.
    let of_python = FOUND.get_or_init(|| {
        let code = "import site, sys; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))";
        let said = Command::new("python3").args(["-I", "-c", code]).output();
        let text = said.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        text.lines().map(PathBuf::from).filter(|p| p.is_dir()).collect()
    });
    all.extend(of_python.iter().filter(|p| !all.contains(p)).cloned().collect::<Vec<_>>());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_plugins_by_name_or_for_all() {
        let of = |v, n| named(v, n).map(|p| p.display().to_string());
        assert_eq!(of("/a/x.so", "cpu").as_deref(), Some("/a/x.so"));
        assert_eq!(of("cpu=/a/x.so,cuda=/b/y.so", "cuda").as_deref(), Some("/b/y.so"));
        assert_eq!(of("cpu=/a/x.so:cuda=/b/y.so", "cpu").as_deref(), Some("/a/x.so"));
        assert_eq!(of("cpu=/a/x.so", "tpu"), None);
        assert_eq!(of("/a/xla_cpu_pjrt.so", "cuda"), None, "it is plainly another platform's");
        assert_eq!(of("", "cpu"), None);
    }

    #[test]
    fn what_is_not_found_says_where_it_was_looked_for_and_how_to_install_it() {
        let folder = std::env::temp_dir().join(format!("gradus_pjrt_find_{}", std::process::id()));
        std::fs::create_dir_all(folder.join("libtpu")).unwrap();
        let folders = [folder.clone()];
        let e = find_in("tpu", None, &folders).unwrap_err().to_string();
        assert!(e.contains("pip install libtpu") && e.contains(&folder.display().to_string()), "{e}");
        std::fs::write(folder.join("libtpu/libtpu.so"), b"").unwrap();
        assert_eq!(find_in("tpu", None, &folders).unwrap(), folder.join("libtpu/libtpu.so"));
        let e = find_in("cpu", Some("cpu=/not/there.so"), &folders).unwrap_err().to_string();
        assert!(e.contains("/not/there.so") && e.contains(VARIABLE), "{e}");
        let e = find_in("quantum", None, &folders).unwrap_err().to_string();
        assert!(e.contains("`quantum`") && e.contains("cpu, cuda, tpu"), "{e}");
        let e = find_in("/no/such/file.so", None, &folders).unwrap_err().to_string();
        assert!(e.contains("/no/such/file.so"), "{e}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
