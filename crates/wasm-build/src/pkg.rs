//! The steps from sources to the two files that a browser loads, and the stamp that lets an unchanged build be skipped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{self, Command};

use wasm_bindgen_cli_support::Bindgen;

use crate::compile::{compile, compile_into, work_dir};
use crate::{Error, Toolchain, fingerprint, run, step};

/// The name of both files, before `.js` and `_bg.wasm`.
const NAME: &str = "paceline_sw";

/// The built worker: an ES module and the wasm that it loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pkg {
    /// The directory of both, which also has TypeScript declarations.
    pub dir: PathBuf,
    /// `paceline_sw.js`.
    pub js: PathBuf,
    /// `paceline_sw_bg.wasm`.
    pub wasm: PathBuf,
}

impl Pkg {
    fn in_dir(dir: PathBuf) -> Self {
        Self {
            js: dir.join(format!("{NAME}.js")),
            wasm: dir.join(format!("{NAME}_bg.wasm")),
            dir,
        }
    }

    fn is_there(&self) -> bool {
        self.js.exists() && self.wasm.exists()
    }
}

/// Builds the worker, or finds that the one there is of the same sources and tools.
///
/// # Errors
/// When a step fails; what an earlier build left is then gone or whole, never half.
pub fn build(root: &Path, toolchain: &Toolchain) -> Result<Pkg, Error> {
    let work = work_dir(root);
    fs::create_dir_all(&work).map_err(Error::file(&work))?;
    let _lock = lock(&work)?;
    let optimiser = optimiser(root);
    let tools = [
        toolchain.name(),
        &toolchain.version(root)?,
        optimiser_version(optimiser.as_deref()),
    ];
    let pkg = Pkg::in_dir(work.join("pkg"));

    let inputs = fingerprint::of_inputs(root, &tools)?;
    let stamp = Stamp::read(&work);
    if stamp.inputs == inputs && pkg.is_there() {
        remove(&missing_marker(root))?;
        return Ok(pkg);
    }
    let module = step(&format!("wasm by {}", toolchain.name()), || {
        compile(root, toolchain, "paceline-sw")
    })?;
    let compiled = fingerprint::of_module(root, &module, &tools)?;
    if stamp.compiled != compiled || !pkg.is_there() {
        remove(&Stamp::path(&work))?;
        finish(&work, &module, optimiser.as_deref(), &pkg)?;
    }
    Stamp { inputs, compiled }.write(&work)?;
    remove(&missing_marker(root))?;
    Ok(pkg)
}

/// Builds the worker with a `--cfg` of rustc, in a directory of its own: to measure what a part of it adds.
///
/// # Errors
/// When a step fails.
pub fn build_with(root: &Path, toolchain: &Toolchain, cfg: &str) -> Result<Pkg, Error> {
    let work = work_dir(root).join(cfg);
    fs::create_dir_all(&work).map_err(Error::file(&work))?;
    let _lock = lock(&work)?;
    let pkg = Pkg::in_dir(work.join("pkg"));
    let module = step(&format!("wasm with {cfg}"), || {
        compile_into(&work, root, toolchain, "paceline-sw", Some(cfg))
    })?;
    finish(&work, &module, optimiser(root).as_deref(), &pkg)?;
    Ok(pkg)
}

/// The file whose end makes cargo run the root build script again: it is there while the binary embeds no worker.
pub(crate) fn missing_marker(root: &Path) -> PathBuf {
    work_dir(root).join("missing")
}

fn remove(path: &Path) -> Result<(), Error> {
    if path.exists() {
        fs::remove_file(path).map_err(Error::file(path))?;
    }
    Ok(())
}

/// Makes glue and optimised wasm in a directory of their own, then moves the files into place.
fn finish(work: &Path, module: &Path, optimiser: Option<&Path>, pkg: &Pkg) -> Result<(), Error> {
    let fresh = Pkg::in_dir(work.join(format!("pkg.{}", process::id())));
    step("wasm-bindgen", || bindgen(module, &fresh.dir))?;
    match optimiser {
        Some(script) => step("wasm-opt -Oz", || optimise(script, &fresh.wasm))?,
        None => eprintln!(
            "    wasm-opt left out: it comes with `npm ci`, which makes the wasm smaller, not different"
        ),
    }
    fs::create_dir_all(&pkg.dir).map_err(Error::file(&pkg.dir))?;
    for entry in fs::read_dir(&fresh.dir)
        .map_err(Error::file(&fresh.dir))?
        .flatten()
    {
        let place = pkg.dir.join(entry.file_name());
        fs::rename(entry.path(), &place).map_err(Error::file(&place))?;
    }
    fs::remove_dir_all(&fresh.dir).map_err(Error::file(&fresh.dir))?;
    let size = fs::metadata(&pkg.wasm)
        .map_err(Error::file(&pkg.wasm))?
        .len();
    eprintln!("    {}: {size} bytes", pkg.wasm.display());
    Ok(())
}

fn bindgen(module: &Path, out: &Path) -> Result<(), Error> {
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(module)
        .out_name(NAME)
        .typescript(true)
        .remove_name_section(true)
        .remove_producers_section(true);
    bindgen
        .web(true)
        .and_then(|bindgen| bindgen.generate(out))
        .map_err(|error| Error::Bindgen(format!("{error:#}")))
}

fn optimiser(root: &Path) -> Option<PathBuf> {
    let script = root.join("node_modules/binaryen/bin/wasm-opt");
    script.exists().then_some(script)
}

/// The optimiser as a part of the fingerprint: package-lock.json pins which one it is.
fn optimiser_version(script: Option<&Path>) -> &'static str {
    script.map_or("no optimiser", |_| "binaryen")
}

fn optimise(script: &Path, wasm: &Path) -> Result<(), Error> {
    let small = wasm.with_extension("small");
    let mut command = Command::new("node");
    command
        .arg(script)
        .arg("-Oz")
        .arg(wasm)
        .arg("-o")
        .arg(&small);
    run(&mut command)?;
    fs::rename(&small, wasm).map_err(Error::file(wasm))
}

/// Waits for another build of the same directory; the lock ends with the file.
fn lock(work: &Path) -> Result<File, Error> {
    let path = work.join("lock");
    let file = File::create(&path).map_err(Error::file(&path))?;
    file.lock().map_err(Error::file(&path))?;
    Ok(file)
}

/// What the files in place were built from: nothing, when they are not whole.
#[derive(Default)]
struct Stamp {
    inputs: String,
    compiled: String,
}

impl Stamp {
    fn path(work: &Path) -> PathBuf {
        work.join("stamp")
    }

    fn read(work: &Path) -> Self {
        let text = fs::read_to_string(Self::path(work)).unwrap_or_default();
        let mut lines = text.lines().map(str::to_owned);
        Self {
            inputs: lines.next().unwrap_or_default(),
            compiled: lines.next().unwrap_or_default(),
        }
    }

    fn write(&self, work: &Path) -> Result<(), Error> {
        let path = Self::path(work);
        let fresh = work.join("stamp.new");
        fs::write(&fresh, format!("{}\n{}\n", self.inputs, self.compiled))
            .map_err(Error::file(&fresh))?;
        fs::rename(&fresh, &path).map_err(Error::file(&path))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn generator_is_of_the_version_of_the_worker() {
        let worker = include_str!("../../../sw/Cargo.toml");
        let own = include_str!("../Cargo.toml");
        let pinned = |manifest: &str, name: &str| {
            let line = manifest
                .lines()
                .find(|line| line.starts_with(&format!("{name} =")));
            line.and_then(|line| line.split('"').find(|part| part.starts_with('=')))
                .map(str::to_owned)
        };

        let wanted = pinned(worker, "wasm-bindgen").expect("the worker pins wasm-bindgen by `=`");

        assert_eq!(pinned(own, "wasm-bindgen-cli-support"), Some(wanted));
    }
}
