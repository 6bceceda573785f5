//! The tables of a file: its strings, the names of dialects and operations, where attributes, types and properties lie, and the blobs of resources.

use gradus_core::{Error, Result};

use super::cursor::{Cursor, error};

/// The newest form of the container that is known.
const NEWEST: u64 = 6;
/// From here on dialects may carry a version.
const DIALECT_VERSIONS: u64 = 1;
/// From here on a section holds the regions that see nothing of what is around them.
pub(super) const REGION_SECTIONS: u64 = 2;
/// From here on the order of uses is written.
pub(super) const USE_ORDERS: u64 = 3;
/// From here on block arguments without a place save the room, and operation names are counted.
pub(super) const SHORT_ARGUMENTS: u64 = 4;
/// From here on properties are not among the attributes.
pub(super) const PROPERTIES: u64 = 5;

/// What a file holds besides its operations.
pub(super) struct File<'a> {
    /// The version of the container.
    pub(super) version: u64,
    /// Who wrote it: `StableHLO_v1.15.0`.
    pub(super) producer: String,
    strings: Vec<&'a [u8]>,
    dialects: Vec<&'a str>,
    /// Whole names of operations.
    pub(super) operations: Vec<String>,
    /// Where attributes lie.
    pub(super) attributes: Vec<Entry<'a>>,
    /// Where types lie.
    pub(super) types: Vec<Entry<'a>>,
    /// The properties that operations share.
    pub(super) properties: Vec<Cursor<'a>>,
    /// The blobs of resources, which `dense_resource` refers to by number; none of one that is only declared.
    pub(super) resources: Vec<Option<&'a [u8]>>,
    /// The operations.
    pub(super) operations_section: Cursor<'a>,
}

/// Where an attribute or a type lies, and how it is written.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// Its dialect.
    pub(super) dialect: &'a str,
    /// Whether it is in the dialect's own encoding; otherwise it is text.
    pub(super) encoded: bool,
    /// What it is.
    pub(super) content: Cursor<'a>,
}

const SECTIONS: [&str; 9] = [
    "strings",
    "dialects",
    "attributes",
    "offsets of attributes",
    "operations",
    "resources",
    "offsets of resources",
    "dialect versions",
    "properties",
];

impl<'a> File<'a> {
    /// Reads the tables of a file.
    pub(super) fn read(bytes: &'a [u8]) -> Result<File<'a>> {
        let mut cursor = Cursor::new(bytes);
        if !super::is_bytecode(bytes) {
            return Err(cursor.error("no MLIR bytecode: it would begin with the bytes 4D 4C EF 52"));
        }
        cursor.bytes(4)?;
        let version = cursor.number()?;
        if version > NEWEST {
            let message = format!("version {version} of MLIR bytecode, and {NEWEST} is the newest that can be read");
            return Err(error(4, message)
                .help("write the file for an older version: `--target=1.0.0` of `stablehlo-translate --serialize`"));
        }
        let producer = String::from_utf8_lossy(cursor.text()?).into_owned();
        let mut sections = [None; SECTIONS.len()];
        while cursor.left() > 0 {
            let at = cursor.at();
            let (id, content) = cursor.section()?;
            match sections.get_mut(usize::from(id)) {
                Some(Some(_)) => return Err(error(at, format!("a second section of {}", SECTIONS[usize::from(id)]))),
                Some(place) => *place = Some(content),
                None => return Err(error(at, format!("section {id}, and there are {} kinds of them", SECTIONS.len()))),
            }
        }
        let section = |id: usize| -> Result<Cursor<'a>> {
            sections[id].ok_or_else(|| error(bytes.len(), format!("the section of {} is missing", SECTIONS[id])))
        };
        let mut file = File {
            version,
            producer,
            strings: strings(section(0)?)?,
            dialects: Vec::new(),
            operations: Vec::new(),
            attributes: Vec::new(),
            types: Vec::new(),
            properties: Vec::new(),
            resources: Vec::new(),
            operations_section: section(4)?,
        };
        file.read_dialects(section(1)?)?;
        file.read_entries(section(2)?, section(3)?)?;
        match (sections[5], sections[6]) {
            (Some(data), Some(offsets)) => file.read_resources(data, offsets)?,
            (None, None) => {}
            _ => return Err(error(bytes.len(), "resources without their offsets, or the reverse")),
        }
        if let Some(mut section) = sections[8].filter(|s| s.left() > 0) {
            for _ in 0..section.count("properties")? {
                let length = section.number()?;
                let start = section.at();
                section.bytes(length)?;
                file.properties.push(section.within(start, section.at()));
            }
            section.finished("the properties")?;
        } else if version >= PROPERTIES {
            section(8)?;
        }
        Ok(file)
    }

    /// The string that a number at `at` refers to.
    pub(super) fn string_of(&self, at: usize, index: u64) -> Result<&'a [u8]> {
        pick(&self.strings, at, index, "string").copied()
    }

    /// The string that the next number refers to.
    pub(super) fn string(&self, cursor: &mut Cursor) -> Result<&'a [u8]> {
        let at = cursor.at();
        self.string_of(at, cursor.number()?)
    }

    fn name_of(&self, at: usize, index: u64) -> Result<&'a str> {
        std::str::from_utf8(self.string_of(at, index)?).map_err(|_| error(at, "a name that is no text"))
    }

    fn read_dialects(&mut self, mut section: Cursor<'a>) -> Result<()> {
        for _ in 0..section.count("dialects")? {
            let at = section.at();
            let (index, versioned) =
                if self.version < DIALECT_VERSIONS { (section.number()?, false) } else { section.flagged()? };
            self.dialects.push(self.name_of(at, index)?);
            // What a dialect says of its version is not needed: every encoding that is read here says what it is.
            if versioned && section.section()?.0 != 7 {
                return Err(section.error("a dialect's version is not in a section of versions"));
            }
        }
        if self.version >= SHORT_ARGUMENTS {
            section.count("operation names")?;
        }
        while section.left() > 0 {
            let (dialect, count) = self.group(&mut section, "operation names")?;
            for _ in 0..count {
                let at = section.at();
                let index = if self.version < PROPERTIES { section.number()? } else { section.flagged()?.0 };
                let name = self.name_of(at, index)?;
                self.operations.push(if name.is_empty() { dialect.into() } else { format!("{dialect}.{name}") });
            }
        }
        Ok(())
    }

    /// The head of a group of one dialect.
    fn group(&self, section: &mut Cursor, what: &str) -> Result<(&'a str, usize)> {
        let at = section.at();
        let dialect = *pick(&self.dialects, at, section.number()?, "dialect")?;
        Ok((dialect, section.count(what)?))
    }

    fn read_entries(&mut self, mut data: Cursor<'a>, mut offsets: Cursor<'a>) -> Result<()> {
        let attributes = offsets.count("attributes")?;
        let types = offsets.count("types")?;
        for (total, kind) in [(attributes, "attributes"), (types, "types")] {
            let mut entries = Vec::with_capacity(total);
            while entries.len() < total {
                let at = offsets.at();
                let (dialect, count) = self.group(&mut offsets, kind)?;
                if count > total - entries.len() {
                    return Err(error(at, format!("more {kind} than the {total} that were announced")));
                }
                for _ in 0..count {
                    let (length, encoded) = offsets.flagged()?;
                    let start = data.at();
                    data.bytes(length)
                        .map_err(|e| e.note(format!("the length stands before byte {}", offsets.at())))?;
                    entries.push(Entry { dialect, encoded, content: data.within(start, data.at()) });
                }
            }
            *(if kind == "types" { &mut self.types } else { &mut self.attributes }) = entries;
        }
        offsets.finished("the offsets of attributes and types")
    }

    fn read_resources(&mut self, mut data: Cursor<'a>, mut offsets: Cursor<'a>) -> Result<()> {
        let external = offsets.count("groups of resources")?;
        let mut groups = 0;
        while groups < external || offsets.left() > 0 {
            let at = offsets.at();
            let owner = offsets.number()?;
            let of_dialect = groups >= external;
            if of_dialect {
                pick(&self.dialects, at, owner, "dialect").map(|_| ())?
            } else {
                self.string_of(at, owner).map(|_| ())?
            }
            for _ in 0..offsets.count("resources")? {
                self.string(&mut offsets)?;
                let length = offsets.number()?;
                let kind = offsets.byte()?;
                let start = data.at();
                data.bytes(length)?;
                let mut content = data.within(start, data.at());
                // Of what others put beside the program nothing is needed; only dialects' resources are referred to.
                if of_dialect {
                    let blob = kind == 0 && length > 0;
                    self.resources.push(if blob { Some(aligned_blob(&mut content)?) } else { None });
                }
            }
            groups += 1;
        }
        Ok(())
    }
}

fn aligned_blob<'a>(content: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let alignment = content.number()?;
    let length = content.number()?;
    content.align(alignment)?;
    content.bytes(length)
}

/// Strings: their lengths, the last one first, then their bytes with a zero behind each.
fn strings(mut section: Cursor<'_>) -> Result<Vec<&[u8]>> {
    let count = section.count("strings")?;
    let mut lengths = Vec::with_capacity(count);
    for _ in 0..count {
        let at = section.at();
        match section.number()? {
            0 => return Err(error(at, "a string without the zero at its end")),
            length => lengths.push(length),
        }
    }
    let mut strings = Vec::with_capacity(count);
    for length in lengths.into_iter().rev() {
        let string = section.bytes(length)?;
        strings.push(&string[..string.len() - 1]);
    }
    section.finished("the strings")?;
    Ok(strings)
}

/// What a number refers to.
pub(super) fn pick<'t, T>(table: &'t [T], at: usize, index: u64, what: &str) -> Result<&'t T> {
    let missing = || -> Error { error(at, format!("{what} {index}, and there are {}", table.len())) };
    usize::try_from(index).ok().and_then(|i| table.get(i)).ok_or_else(missing)
}
