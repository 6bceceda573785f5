//! `.npz`: a zip archive with a `.npy` for each array.

use std::io::{self, Cursor, Seek, Write};

use gradus_core::{Array, Result, Type};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::npy::{self, Header};
use super::{Source, bad, not_a};

pub(super) fn write(out: &mut (impl Write + Seek), arrays: &[(String, Array)]) -> Result<()> {
    let wrong = |e: zip::result::ZipError| bad(format!("cannot be written: {e}"));
    let mut archive = ZipWriter::new(out);
    for (name, array) in arrays {
        // As NumPy does: arrays of weights hardly get smaller.
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
        archive.start_file(format!("{name}.npy"), options).map_err(wrong)?;
        npy::write(&mut archive, array)?;
    }
    archive.finish().map_err(wrong).map(|_| ())
}

pub(super) struct Npz<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
}

impl<'a> Npz<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Npz<'a>> {
        let archive = ZipArchive::new(Cursor::new(bytes));
        let mut archive = archive.map_err(|e| not_a(".npz", bytes, &e))?;
        // Names and sizes stand in it twice, and no checksum is of them: a name that was damaged would be another array.
        archive.validate_header_consistency().map_err(|e| not_a(".npz", bytes, &e))?;
        Ok(Npz { archive })
    }

    /// Something of the `.npy` of a name, if it is there.
    fn within<T>(
        &mut self,
        name: &str,
        f: impl FnOnce(&mut zip::read::ZipFile<'_, Cursor<&'a [u8]>>) -> Result<T>,
    ) -> Result<Option<T>> {
        use zip::result::ZipError;
        match self.archive.by_name(&format!("{name}.npy")) {
            Ok(mut file) => f(&mut file).map(Some).map_err(|e| e.within(format!("its array `{name}` "))),
            Err(ZipError::FileNotFound) => Ok(None),
            Err(e) => Err(bad(format!("its array `{name}` cannot be read: {e}"))),
        }
    }
}

impl Source for Npz<'_> {
    fn names(&self) -> Vec<String> {
        let all = self.archive.file_names().filter_map(|name| name.ok().map(|n| n.into_owned()));
        let mut all: Vec<String> = all.filter_map(|n| n.strip_suffix(".npy").map(str::to_string)).collect();
        all.sort_unstable();
        all
    }

    fn ty(&mut self, name: &str) -> Result<Option<Type>> {
        self.within(name, |file| Header::read(file)?.ty())
    }

    fn array(&mut self, name: &str) -> Result<Array> {
        let array = self.within(name, |file| {
            let array = Header::read(file)?.array(file)?;
            // The checksum is compared when the entry has been read to its end, one read behind the last number.
            io::copy(file, &mut io::sink()).map_err(|e| bad(format!("is damaged: {e}")))?;
            Ok(array)
        })?;
        array.ok_or_else(|| bad(format!("has no array `{name}`")))
    }
}
