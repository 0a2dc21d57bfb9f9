//! The files that are served: pages, modules and the built worker, from the binary or from a folder.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "demo-app/web/"]
struct Web;

#[derive(RustEmbed)]
#[folder = "sw/"]
#[include = "*.js"]
#[exclude = "node_modules/*"]
#[exclude = "src/*"]
#[exclude = "target/*"]
struct Modules;

/// The built worker, or the reason why there is none, as the build script left it.
#[allow(
    unreachable_pub,
    reason = "the file is generated and does not know where it is included"
)]
mod pkg {
    include!(concat!(env!("OUT_DIR"), "/pkg_assets.rs"));
}

/// The names that the built worker's files have.
const WORKER_FILES: [&str; 2] = ["paceline_sw.js", "paceline_sw_bg.wasm"];

/// Where a kind of file comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The binary.
    Embedded(fn(&str) -> Option<Cow<'static, [u8]>>),
    /// A folder, read anew for each request.
    Folder(PathBuf),
}

impl Source {
    pub(crate) fn web(folder: Option<&Path>) -> Self {
        folder.map_or(
            Self::Embedded(|name| Web::get(name).map(|file| file.data)),
            Self::folder,
        )
    }

    pub(crate) fn modules(folder: Option<&Path>) -> Self {
        folder.map_or(
            Self::Embedded(|name| Modules::get(name).map(|file| file.data)),
            Self::folder,
        )
    }

    pub(crate) fn worker(folder: Option<&Path>) -> Self {
        folder.map_or(Self::Embedded(embedded_worker), Self::folder)
    }

    fn folder(folder: &Path) -> Self {
        Self::Folder(folder.to_owned())
    }

    /// Reads a file by its path below the source's root; a path that leads out of it is no file.
    pub(crate) async fn read(&self, name: &str) -> Option<Cow<'static, [u8]>> {
        let is_plain = Path::new(name)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        match self {
            _ if !is_plain || name.is_empty() => None,
            Self::Embedded(get) => get(name),
            Self::Folder(folder) => tokio::fs::read(folder.join(name))
                .await
                .ok()
                .map(Cow::Owned),
        }
    }
}

fn embedded_worker(name: &str) -> Option<Cow<'static, [u8]>> {
    pkg::PKG
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, bytes)| Cow::Borrowed(*bytes))
}

/// Tells whether a name is one of the built worker's files.
pub(crate) fn is_worker_file(name: &str) -> bool {
    WORKER_FILES.contains(&name)
}

/// Tells why the built worker is not there, if it is not.
pub(crate) fn missing_worker(folder: Option<&Path>) -> Option<String> {
    match folder {
        Some(folder) => WORKER_FILES
            .iter()
            .find(|name| !folder.join(name).is_file())
            .map(|name| format!("{} has no {name}", folder.display())),
        None => pkg::PKG_MISSING.map(str::to_owned),
    }
}
