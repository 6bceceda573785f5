//! Clients and their devices. A client is made once for a plugin and its options, and stays like the plugin: arrays and code hold on to it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::api::{Api, call, slice_of, text_of};
use crate::error::{Result, error};
use crate::options::{Named, named_values};
use crate::plugin::Plugin;
use crate::sys::{PJRT_Client, PJRT_Device, args};

/// The devices that a plugin found, with the options it was asked with.
pub struct Client {
    plugin: &'static Plugin,
    raw: NonNull<PJRT_Client>,
    devices: Vec<Device>,
    platform: String,
    version: String,
    pub(crate) moved: Moved,
}

// SAFETY: the interface says that a client and its devices may be used from any thread; what is behind the pointers is never freed.
unsafe impl Send for Client {}
// SAFETY: as above.
unsafe impl Sync for Client {}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, {} devices)", self.platform, self.devices.len())
    }
}

/// Bytes that went to devices and came back.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    up: AtomicU64,
    down: AtomicU64,
    shared: AtomicU64,
}

impl Moved {
    pub fn up(&self, bytes: usize) {
        self.up.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    pub fn down(&self, bytes: usize) {
        self.down.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    pub fn shared(&self, bytes: usize) {
        self.shared.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// What a client did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes copied to devices.
    pub up: u64,
    /// Bytes copied from devices.
    pub down: u64,
    /// Bytes of arrays that a device reads where they lie: nothing was copied.
    pub shared: u64,
}

/// What a device says about its memory. None: it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMemory {
    /// Bytes in use.
    pub in_use: i64,
    /// The most bytes that were in use.
    pub peak: Option<i64>,
    /// The most bytes that can be.
    pub limit: Option<i64>,
}

/// One device of a client.
pub struct Device {
    pub(crate) raw: NonNull<PJRT_Device>,
    api: &'static Api,
    id: i64,
    kind: String,
    name: String,
}

// SAFETY: the device belongs to its client, which is never freed, and may be asked from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.kind)
    }
}

/// Clients of this process, by plugin and options.
static CLIENTS: LazyLock<Mutex<BTreeMap<(PathBuf, String), &'static Client>>> = LazyLock::new(Mutex::default);

impl Client {
    /// The client of a plugin with these options: made at the first call, and kept.
    pub(crate) fn of(plugin: &'static Plugin, options: &Named) -> Result<&'static Client> {
        let key = (plugin.path().to_path_buf(), format!("{options:?}"));
        // Held while it is made: two clients of one GPU would share its memory badly.
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = clients.get(&key) {
            return Ok(found);
        }
        let client: &'static Client = Box::leak(Box::new(Client::new(plugin, options)?));
        clients.insert(key, client);
        Ok(client)
    }

    fn new(plugin: &'static Plugin, options: &Named) -> Result<Client> {
        let api = &plugin.api;
        let values = named_values(options);
        let mut a = args!(PJRT_Client_Create_Args { create_options: values.as_ptr(), num_options: values.len() });
        // SAFETY: the arguments are of this function; the values and what they point at outlive the call.
        unsafe { call!(api, PJRT_Client_Create, &raw mut a) }
            .map_err(|e| e.note(format!("a client of {} was to be made with {options:?}", plugin.path().display())))?;
        let Some(raw) = NonNull::new(a.client) else {
            return Err(error!(Device, "{} made no client and gave no reason", api.name));
        };
        let mut p = args!(PJRT_Client_PlatformName_Args { client: raw.as_ptr() });
        let mut v = args!(PJRT_Client_PlatformVersion_Args { client: raw.as_ptr() });
        let mut d = args!(PJRT_Client_AddressableDevices_Args { client: raw.as_ptr() });
        // SAFETY: the client was just made; texts and list are its own and live as long as it does.
        let (platform, version, devices) = unsafe {
            call!(api, PJRT_Client_PlatformName, &raw mut p)?;
            call!(api, PJRT_Client_PlatformVersion, &raw mut v)?;
            call!(api, PJRT_Client_AddressableDevices, &raw mut d)?;
            (
                text_of(p.platform_name, p.platform_name_size),
                text_of(v.platform_version, v.platform_version_size),
                slice_of(d.addressable_devices, d.num_addressable_devices),
            )
        };
        let devices = devices.iter().filter_map(|d| NonNull::new(*d)).map(|d| Device::new(api, d));
        let devices = devices.collect::<Result<Vec<_>>>()?;
        Ok(Client { plugin, raw, devices, platform, version, moved: Moved::default() })
    }

    pub(crate) fn api(&self) -> &'static Api {
        &self.plugin.api
    }

    pub(crate) fn raw(&self) -> *mut PJRT_Client {
        self.raw.as_ptr()
    }

    /// The plugin.
    pub fn plugin(&self) -> &'static Plugin {
        self.plugin
    }

    /// `cpu`, `cuda`, `tpu`: what the plugin calls its devices.
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// What the plugin says about the version of the platform.
    pub fn platform_version(&self) -> &str {
        &self.version
    }

    /// The devices of this process.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// A device by its number among those of this process.
    pub fn device(&self, index: usize) -> Result<&Device> {
        self.devices.get(index).ok_or_else(|| {
            let names: Vec<String> = self.devices.iter().map(Device::to_string).collect();
            error!(Device, "there is no device {index} of `{}`", self.platform)
                .note(format!("there are {}: {}", self.devices.len(), names.join(", ")))
                .help("devices are counted from 0; the CPU plugin has as many as `.device_count(n)` says")
        })
    }

    /// Bytes moved since the client was made.
    pub fn traffic(&self) -> Traffic {
        let read = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Traffic { up: read(&self.moved.up), down: read(&self.moved.down), shared: read(&self.moved.shared) }
    }

    /// Whether its devices compute in the memory of this process.
    pub(crate) fn shares_memory(&self) -> bool {
        self.platform == "cpu"
    }
}

impl Device {
    fn new(api: &'static Api, raw: NonNull<PJRT_Device>) -> Result<Device> {
        let mut g = args!(PJRT_Device_GetDescription_Args { device: raw.as_ptr() });
        // SAFETY: the device is one of its client's list; the description is the device's own.
        unsafe { call!(api, PJRT_Device_GetDescription, &raw mut g) }?;
        let about = g.device_description;
        let mut i = args!(PJRT_DeviceDescription_Id_Args { device_description: about });
        let mut k = args!(PJRT_DeviceDescription_Kind_Args { device_description: about });
        let mut n = args!(PJRT_DeviceDescription_ToString_Args { device_description: about });
        // SAFETY: as above; the texts are the description's own.
        let (kind, name) = unsafe {
            call!(api, PJRT_DeviceDescription_Id, &raw mut i)?;
            call!(api, PJRT_DeviceDescription_Kind, &raw mut k)?;
            call!(api, PJRT_DeviceDescription_ToString, &raw mut n)?;
            (text_of(k.device_kind, k.device_kind_size), text_of(n.to_string, n.to_string_size))
        };
        Ok(Device { raw, api, id: i64::from(i.id), kind, name })
    }

    /// Its number among the devices of all processes.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// What sort of device it is, as its maker calls it.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What the plugin calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says about its memory, if it says anything.
    pub fn memory(&self) -> Option<DeviceMemory> {
        let mut a = args!(PJRT_Device_MemoryStats_Args { device: self.raw.as_ptr() });
        // SAFETY: the device is one of its client's, and the arguments are of this function.
        unsafe { call!(self.api, PJRT_Device_MemoryStats, &raw mut a) }.ok()?;
        Some(DeviceMemory {
            in_use: a.bytes_in_use,
            peak: a.peak_bytes_in_use_is_set.then_some(a.peak_bytes_in_use),
            limit: a.bytes_limit_is_set.then_some(a.bytes_limit),
        })
    }
}
