//! A folder of files that are whole or not there: written under another name and renamed, checked from the first byte to the
//! last when they are read, and bounded in bytes. What it holds is its user's business.
//!
//! Any number of processes may use one folder. None of them waits for another: two that write the same entry write the same
//! bytes, and the last rename wins. A file that is torn, flipped, of another version or of somebody else is as good as none,
//! and is removed. There is no `fsync`: after a power cut a file may be torn, and a torn file is found by its checksum.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use super::bytes::{Reader, Writer};

/// What files begin with.
const MAGIC: &[u8; 8] = b"GRADUSC\0";
/// The version of the layout of files.
const VERSION: u32 = 1;
const HASH: usize = 32;
/// Magic, version, key, length of the content, checksum.
const HEADER: usize = 8 + 4 + HASH + 8 + HASH;
/// The end of the names of entries.
const ENTRY: &str = ".code";
/// The end of the names of files that are being written.
const PART: &str = ".part";
/// A file that is being written for longer than this was left behind.
const ABANDONED: Duration = Duration::from_secs(600);

/// The name of an entry: a hash of everything that its content depends on.
pub(super) type Key = blake3::Hash;

/// A folder with entries.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    limit: u64,
}

/// What reading gave.
pub(super) enum Found {
    /// The content.
    Whole(Vec<u8>),
    /// No such entry.
    Absent,
    /// There was a file, and it was not what it should be. It is removed.
    Broken,
}

/// How full the folder is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Fill {
    pub entries: usize,
    pub bytes: u64,
}

struct Listed {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    part: bool,
}

impl Store {
    /// The store in a folder, which is made if need be. The error says in a sentence why it is not to be used.
    pub fn open(folder: &Path, limit: u64) -> Result<Store, String> {
        let named = |e: io::Error| format!("{}: {e}", folder.display());
        if !folder.is_dir() {
            make_folder(folder).map_err(named)?;
        }
        let about = fs::metadata(folder).map_err(named)?;
        if !about.is_dir() {
            return Err(format!("{} is not a folder", folder.display()));
        }
        if let Some(why) = distrust(&about) {
            return Err(format!("{} {why}, and machine code from it would be run", folder.display()));
        }
        // A relative path must not mean another folder later.
        let folder = fs::canonicalize(folder).map_err(named)?;
        Ok(Store { folder, limit })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{}{ENTRY}", key.to_hex()))
    }

    /// Whether there is a file of this name, whatever is in it.
    pub fn has(&self, key: &Key) -> bool {
        self.path(key).is_file()
    }

    /// The content of an entry.
    pub fn read(&self, key: &Key) -> Found {
        let path = self.path(key);
        // To open a pipe would wait for somebody to write into it.
        match fs::metadata(&path) {
            Ok(about) if about.is_file() => {}
            Ok(_) => {
                self.remove(key);
                return Found::Broken;
            }
            Err(_) => return Found::Absent,
        }
        let Ok(mut file) = File::open(&path) else { return Found::Absent };
        match read_whole(&mut file, key) {
            Some(content) => {
                // What was used last goes last. A folder that cannot be written only forgets that.
                drop(file.set_modified(SystemTime::now()));
                Found::Whole(content)
            }
            None => {
                self.remove(key);
                Found::Broken
            }
        }
    }

    /// Takes an entry away, or an empty folder in its place. A folder that holds something is not ours to empty.
    pub fn remove(&self, key: &Key) {
        let path = self.path(key);
        if fs::remove_file(&path).is_err() {
            drop(fs::remove_dir(&path));
        }
    }

    /// Writes an entry, and removes those used longest ago where there are too many bytes.
    pub fn write(&self, key: &Key, content: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if (HEADER + content.len()) as u64 > self.limit {
            return Ok(());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let part = self.folder.join(format!("{}.{}.{number}{PART}", key.to_hex(), std::process::id()));
        let written = write_whole(&part, key, content).and_then(|()| fs::rename(&part, self.path(key)));
        if written.is_err() {
            drop(fs::remove_file(&part));
        }
        written?;
        self.shrink(key);
        Ok(())
    }

    fn list(&self) -> Vec<Listed> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files
            .filter_map(|file| {
                let name = file.file_name();
                let name = name.to_str()?;
                let part = name.ends_with(PART);
                let about = file.metadata().ok().filter(|m| m.is_file() && (part || name.ends_with(ENTRY)))?;
                let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                Some(Listed { path: file.path(), bytes: about.len(), used, part })
            })
            .collect()
    }

    /// Keeps to the bound. The entry just written stays.
    fn shrink(&self, keep: &Key) {
        let mut files = self.list();
        let old = |f: &Listed| f.used.elapsed().is_ok_and(|age| age > ABANDONED);
        files.retain(|f| {
            let abandoned = f.part && old(f);
            if abandoned {
                drop(fs::remove_file(&f.path));
            }
            !abandoned
        });
        let mut bytes: u64 = files.iter().map(|f| f.bytes).sum();
        files.sort_by_key(|f| f.used);
        let kept = self.path(keep);
        for f in files.iter().filter(|f| !f.part && f.path != kept) {
            if bytes <= self.limit {
                return;
            }
            // Another process may have been faster: then it is gone, too.
            drop(fs::remove_file(&f.path));
            bytes -= f.bytes;
        }
    }

    /// How many entries there are.
    pub fn fill(&self) -> Fill {
        let files = self.list();
        Fill { entries: files.iter().filter(|f| !f.part).count(), bytes: files.iter().map(|f| f.bytes).sum() }
    }

    /// Removes every entry.
    pub fn clear(&self) {
        self.list().iter().for_each(|f| drop(fs::remove_file(&f.path)));
    }
}

fn header(key: &Key, content: &[u8]) -> Vec<u8> {
    let mut w = Writer::default();
    w.0.extend_from_slice(MAGIC);
    w.u32(VERSION);
    w.0.extend_from_slice(key.as_bytes());
    w.u64(content.len() as u64);
    let mut checksum = blake3::Hasher::new();
    checksum.update(&w.0).update(content);
    w.0.extend_from_slice(checksum.finalize().as_bytes());
    w.0
}

fn write_whole(path: &Path, key: &Key, content: &[u8]) -> io::Result<()> {
    let mut file = new_file(path)?;
    file.write_all(&header(key, content))?;
    file.write_all(content)
}

/// The content of a file that is ours, whole, of this version, and of this key.
fn read_whole(file: &mut File, key: &Key) -> Option<Vec<u8>> {
    let about = file.metadata().ok()?;
    // The folder may have been another when it was looked at: what counts is whose file this is.
    if !about.is_file() || distrust(&about).is_some() {
        return None;
    }
    let mut all = Vec::new();
    file.read_to_end(&mut all).ok()?;
    let mut r = Reader(&all);
    let (magic, version) = (r.take(MAGIC.len())?, r.u32()?);
    if magic != MAGIC || version != VERSION || r.take(HASH)? != key.as_bytes() {
        return None;
    }
    let length = r.u64()?;
    let checksum: [u8; HASH] = r.take(HASH)?.try_into().ok()?;
    let content = r.0;
    if content.len() as u64 != length {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&all[..HEADER - HASH]).update(content);
    (hasher.finalize() == checksum).then(|| content.to_vec())
}

/// Why files of this owner and with these rights are not to be trusted.
#[cfg(unix)]
fn distrust(about: &fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    const ROOT: u32 = 0;
    const OTHERS_WRITE: u32 = 0o022;
    match () {
        _ if about.uid() != geteuid() && about.uid() != ROOT => Some("belongs to another user"),
        _ if about.mode() & OTHERS_WRITE != 0 => Some("can be written by other users"),
        _ => None,
    }
}

/// Elsewhere the folder's own rights are the system's business.
#[cfg(not(unix))]
fn distrust(_: &fs::Metadata) -> Option<&'static str> {
    None
}

#[cfg(unix)]
fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(unix)]
fn new_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn new_file(path: &Path) -> io::Result<File> {
    fs::OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("gradus_store_{name}_{}", std::process::id()));
            drop(fs::remove_dir_all(&path));
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    fn key(text: &str) -> Key {
        blake3::hash(text.as_bytes())
    }

    fn content(found: Found) -> Option<Vec<u8>> {
        match found {
            Found::Whole(c) => Some(c),
            Found::Absent | Found::Broken => None,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = Folder::new("read");
        let store = Store::open(&folder.0, 1 << 20).unwrap();
        assert!(matches!(store.read(&key("a")), Found::Absent));
        store.write(&key("a"), b"some code").unwrap();
        store.write(&key("b"), b"").unwrap();
        assert_eq!(content(store.read(&key("a"))).unwrap(), b"some code");
        assert_eq!(content(store.read(&key("b"))).unwrap(), b"");
        assert_eq!(store.fill().entries, 2);
        store.clear();
        assert_eq!(store.fill().entries, 0);
    }

    /// A pipe, a socket, a folder or a link to one of them in the place of an entry: reading does not wait for it, and a new
    /// entry takes its place.
    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_no_entry() {
        let folder = Folder::new("pipe");
        let store = Store::open(&folder.0, 1 << 20).unwrap();
        let k = key("a");
        let path = store.path(&k);
        let pipe = |at: &Path| assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success());
        let pipe_behind = folder.0.join("a pipe");
        pipe(&pipe_behind);
        let places: [&dyn Fn(); 4] = [
            &|| pipe(&path),
            &|| {
                // The path of a socket must be short when it is made.
                drop(std::os::unix::net::UnixListener::bind(folder.0.join("s")).unwrap());
                fs::rename(folder.0.join("s"), &path).unwrap();
            },
            &|| fs::create_dir(&path).unwrap(),
            &|| std::os::unix::fs::symlink(&pipe_behind, &path).unwrap(),
        ];
        for place in places {
            place();
            assert!(!store.has(&k));
            assert!(matches!(store.read(&k), Found::Broken));
            assert!(matches!(store.read(&k), Found::Absent), "it is gone");
            store.write(&k, b"code").unwrap();
            assert_eq!(content(store.read(&k)).unwrap(), b"code");
            store.clear();
        }
        fs::create_dir(&path).unwrap();
        fs::write(path.join("somebody's"), b"").unwrap();
        assert!(matches!(store.read(&k), Found::Broken));
        assert!(store.write(&k, b"code").is_err(), "a folder that is not empty stays");
    }

    #[test]
    fn every_flipped_bit_and_every_torn_end_is_found() {
        let folder = Folder::new("flip");
        let store = Store::open(&folder.0, 1 << 20).unwrap();
        let (k, code) = (key("a"), b"the content of an entry");
        store.write(&k, code).unwrap();
        let whole = fs::read(store.path(&k)).unwrap();
        for i in 0..whole.len() * 8 {
            let mut bad = whole.clone();
            bad[i / 8] ^= 1 << (i % 8);
            fs::write(store.path(&k), &bad).unwrap();
            private(&store.path(&k));
            assert!(matches!(store.read(&k), Found::Broken), "bit {i}");
            assert!(!store.has(&k), "a broken entry is removed");
        }
        for n in 0..whole.len() {
            fs::write(store.path(&k), &whole[..n]).unwrap();
            private(&store.path(&k));
            assert!(matches!(store.read(&k), Found::Broken), "{n} bytes");
        }
        let mut longer = whole.clone();
        longer.push(0);
        fs::write(store.path(&k), &longer).unwrap();
        private(&store.path(&k));
        assert!(matches!(store.read(&k), Found::Broken));
        // Another entry's file under this name is not this entry.
        store.write(&key("b"), code).unwrap();
        fs::rename(store.path(&key("b")), store.path(&k)).unwrap();
        assert!(matches!(store.read(&k), Found::Broken));
        store.write(&k, code).unwrap();
        assert_eq!(content(store.read(&k)).unwrap(), code);
    }

    fn private(path: &Path) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        #[cfg(not(unix))]
        let _ = path;
    }

    #[test]
    fn the_oldest_used_go_first() {
        let folder = Folder::new("limit");
        let size = 1000;
        let store = Store::open(&folder.0, 3 * (HEADER as u64 + size)).unwrap();
        let data = vec![7; size as usize];
        let at = |name: &str, seconds: u64| {
            let file = File::options().write(true).open(store.path(&key(name))).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        };
        for (i, name) in ["a", "b", "c"].into_iter().enumerate() {
            store.write(&key(name), &data).unwrap();
            at(name, 100 + i as u64);
        }
        // Reading is using.
        assert!(content(store.read(&key("a"))).is_some());
        store.write(&key("d"), &data).unwrap();
        let kept = ["a", "b", "c", "d"].map(|n| store.has(&key(n)));
        assert_eq!(kept, [true, false, true, true]);
        assert!(store.fill().bytes <= store.limit());
        // What is too large alone is not written at all.
        store.write(&key("huge"), &vec![0; 4 * size as usize]).unwrap();
        assert!(!store.has(&key("huge")));
        assert_eq!(store.fill().entries, 3);
    }

    #[test]
    fn what_was_left_behind_is_swept_up() {
        let folder = Folder::new("parts");
        let store = Store::open(&folder.0, 1 << 20).unwrap();
        let (old, new) = (folder.0.join("x.1.0.part"), folder.0.join("x.2.0.part"));
        fs::write(&new, b"being written").unwrap();
        let file = File::create(&old).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        store.write(&key("a"), b"x").unwrap();
        assert!(!old.exists());
        assert!(new.exists());
        assert_eq!(store.fill().entries, 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("rights");
        let store = Store::open(&folder.0, 1 << 20).unwrap();
        assert_eq!(fs::metadata(&folder.0).unwrap().permissions().mode() & 0o777, 0o700);
        store.write(&key("a"), b"code").unwrap();
        assert_eq!(fs::metadata(store.path(&key("a"))).unwrap().permissions().mode() & 0o777, 0o600);
        // A file that others can write is not run, even if its checksum is right.
        fs::set_permissions(store.path(&key("a")), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(store.read(&key("a")), Found::Broken));
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o770)).unwrap();
        let why = Store::open(&folder.0, 1 << 20).unwrap_err();
        assert!(why.contains("can be written by other users"), "{why}");
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(folder.0.join("file"), b"").unwrap();
        assert!(Store::open(&folder.0.join("file"), 1).is_err());
    }
}
