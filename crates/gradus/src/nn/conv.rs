//! Convolutions with layouts given as text.

use gradus_core::error::counted;
use gradus_core::primitives::Op;
use gradus_core::primitives::convolve::Convolve;
use gradus_core::trace::bind;
use gradus_core::{Array, Decision, Dim, Error, ErrorKind, Result, Type};

use super::layout::Layout;
use crate::line::{on_line, refuse};

/// How a convolution goes over its image: strides, padding, holes and groups. The usual is one step at a time, no padding, no holes, one group.
/// What has an entry for each axis of places has them in the order of the kernel's layout.
#[derive(Clone, Debug)]
pub struct Conv {
    strides: Option<Vec<usize>>,
    padding: Padding,
    dilation: Option<Vec<usize>>,
    image_dilation: Option<Vec<usize>>,
    groups: Dim,
    batch_groups: Dim,
}

/// What is put around an image.
#[derive(Clone, Debug, Default)]
pub(super) enum Padding {
    /// Nothing.
    #[default]
    Valid,
    /// So much that the result has an element for each stride.
    Same,
    /// So much before and behind along each axis.
    Pairs(Vec<(Dim, Dim)>),
}

impl Padding {
    /// Amounts before and behind, for each axis of sizes `n`, windows that reach so far, and strides.
    pub(super) fn amounts(&self, sizes: &[Dim], reaches: &[Dim], strides: &[usize]) -> Result<Vec<(Dim, Dim)>> {
        let zero = || Dim::from(0usize);
        match self {
            Padding::Valid => Ok(sizes.iter().map(|_| (zero(), zero())).collect()),
            Padding::Pairs(pairs) if pairs.len() == sizes.len() => Ok(pairs.clone()),
            Padding::Pairs(pairs) => refuse(
                ErrorKind::Shape,
                format!("padding for {} where there are {}", counted(pairs.len(), "axis"), sizes.len()),
                "give a pair, before and behind, for each axis of places",
            ),
            Padding::Same => Ok(sizes
                .iter()
                .zip(reaches)
                .zip(strides)
                .map(|((n, reach), &stride)| {
                    // A stride of 0 is refused later, where all are looked at.
                    let stride = Dim::from(stride.max(1));
                    let last = (n - 1usize).floor_div(&stride) * &stride;
                    let total = (last + reach - n).max(&zero());
                    let low = total.floor_div(&Dim::from(2usize));
                    (low.clone(), total - low)
                })
                .collect()),
        }
    }
}

impl Default for Conv {
    fn default() -> Conv {
        let one = || Dim::from(1usize);
        Conv {
            strides: None,
            padding: Padding::Valid,
            dilation: None,
            image_dilation: None,
            groups: one(),
            batch_groups: one(),
        }
    }
}

impl Conv {
    /// How far apart windows begin, along each axis of places.
    #[must_use]
    pub fn strides(self, strides: impl IntoIterator<Item = usize>) -> Conv {
        Conv { strides: Some(strides.into_iter().collect()), ..self }
    }

    /// So many zeros before and behind, along each axis of places; negative to crop.
    #[must_use]
    pub fn padding<D: Into<Dim>>(self, pairs: impl IntoIterator<Item = (D, D)>) -> Conv {
        let pairs = pairs.into_iter().map(|(low, high)| (low.into(), high.into())).collect();
        Conv { padding: Padding::Pairs(pairs), ..self }
    }

    /// As many zeros around the image as give one result for each stride, the odd one behind.
    #[must_use]
    pub fn same(self) -> Conv {
        Conv { padding: Padding::Same, ..self }
    }

    /// How far apart the elements of the kernel are, along each axis of places.
    #[must_use]
    #[doc(alias = "rhs_dilation")]
    pub fn dilation(self, dilation: impl IntoIterator<Item = usize>) -> Conv {
        Conv { dilation: Some(dilation.into_iter().collect()), ..self }
    }

    /// How far apart the elements of the image are, with zeros between, along each axis of places.
    #[must_use]
    #[doc(alias = "lhs_dilation")]
    pub fn image_dilation(self, dilation: impl IntoIterator<Item = usize>) -> Conv {
        Conv { image_dilation: Some(dilation.into_iter().collect()), ..self }
    }

    /// Features in so many groups, each with kernels of its own: as many as there are features for a convolution of each alone.
    #[must_use]
    #[doc(alias = "feature_group_count")]
    pub fn groups(self, groups: impl Into<Dim>) -> Conv {
        Conv { groups: groups.into(), ..self }
    }

    /// Examples in so many groups, each with kernels of its own.
    #[must_use]
    #[doc(alias = "batch_group_count")]
    pub fn batch_groups(self, groups: impl Into<Dim>) -> Conv {
        Conv { batch_groups: groups.into(), ..self }
    }
}

/// A list with an entry for each axis, or ones.
pub(super) fn for_each(what: &str, list: &Option<Vec<usize>>, axes: usize) -> Result<Vec<usize>> {
    let Some(list) = list else { return Ok(vec![1; axes]) };
    if list.len() != axes {
        return refuse(
            ErrorKind::Shape,
            format!("{} for {} of places", counted(list.len(), what), counted(axes, "axis")),
            "give one for each axis that is neither examples nor features",
        );
    }
    if list.contains(&0) {
        return refuse(ErrorKind::Value, format!("{what}s of {list:?}"), "they are at least 1");
    }
    Ok(list.clone())
}

/// How far a window reaches.
pub(super) fn reach(size: &Dim, dilation: usize) -> Dim {
    (size - 1usize) * dilation + 1usize
}

/// Image and kernel in one dtype and in the layout of the operation.
struct Operands {
    image: Array,
    kernel: Array,
    layout: Layout,
    /// What the user gave, for messages: the layout's text, and the types in it.
    given: Given,
}

struct Given {
    text: String,
    image: Type,
    kernel: Type,
}

impl Operands {
    fn new(layout: &str, x: &Array, w: &Array) -> Result<Operands> {
        let text = layout.to_string();
        let layout = Layout::read(layout)?;
        let (tx, tw) = (x.ty()?, w.ty()?);
        for (what, letters, ty) in [("image", layout.image.letters(), tx), ("kernel", layout.kernel(), tw)] {
            if ty.rank() != letters.len() {
                let own: String = letters.iter().collect();
                let axes = counted(letters.len(), "axis");
                return refuse(
                    ErrorKind::Shape,
                    format!("{own:?} in the layout {text:?} says {axes} for the {what}, and {ty} has {}", ty.rank()),
                    "write a letter for each axis, and give a single example an axis with `expand_dims`",
                );
            }
        }
        let dtype = tx.dtype().promote(tw.dtype()).ok_or_else(|| {
            Error::new(ErrorKind::DType, format!("{tx} and {tw} have no dtype that holds both without loss"))
                .help("cast one of them")
        })?;
        let image = x.cast(dtype).transpose(layout.image_order()).ok()?;
        let kernel = w.cast(dtype).transpose(layout.kernel_order()).ok()?;
        let given = Given { text, image: tx.clone(), kernel: tw.clone() };
        Ok(Operands { image, kernel, layout, given })
    }

    /// Refuses features that do not fit, and windows that do not, in the words of the layout: the operation would speak of axes in its own order.
    fn check(&self, op: &Convolve) -> Result<()> {
        let Given { text, image, kernel } = &self.given;
        let (features, each) = (self.image.dim(-1), self.kernel.dim(-2));
        if features.equals(&(&each * &op.feature_groups)) == Decision::No {
            let groups = if op.feature_groups.constant() == Some(1) {
                String::new()
            } else {
                format!(" in each of {} groups", op.feature_groups)
            };
            return refuse(
                ErrorKind::Shape,
                format!(
                    "by the layout {text:?} the image {image} has {} along `C`, and the kernel {kernel} takes {each} along `I`{groups}",
                    counted(&features, "feature")
                ),
                "the features of the kernel times the groups are those of the image; if the sizes are right, the letters are in another order",
            );
        }
        for (i, letter) in self.layout.image.spatial.iter().enumerate() {
            let window = reach(&self.kernel.dim(i as isize), op.kernel_dilation[i]); // invariant: lists are as long as the axes of places
            let room = reach(&self.image.dim(i as isize + 1), op.image_dilation[i]) + &op.low[i] + &op.high[i];
            // Of an image without elements the operation says more.
            let some = self.image.dim(i as isize + 1).constant() != Some(0) && room.constant().is_some_and(|n| n > 0);
            if some && (&room - &window).constant().is_some_and(|left| left < 0) {
                return refuse(
                    ErrorKind::Shape,
                    format!(
                        "by the layout {text:?} the kernel {kernel} reaches over {window} elements along `{letter}` and does not fit: the image {image} has {room} there, padding included"
                    ),
                    "pad the image, as with `.same()`, or take a smaller kernel; if the sizes are right, the letters are in another order",
                );
            }
        }
        Ok(())
    }

    fn axes(&self) -> usize {
        self.image.rank() - 2
    }

    fn sizes(&self) -> Vec<Dim> {
        (0..self.axes()).map(|a| self.image.dim(a as isize + 1)).collect()
    }

    fn reaches(&self, dilation: &[usize]) -> Vec<Dim> {
        dilation.iter().enumerate().map(|(a, d)| reach(&self.kernel.dim(a as isize), *d)).collect()
    }

    fn run(self, op: Convolve) -> Result<Array> {
        self.check(&op)?;
        let Given { text, image, kernel } = self.given;
        let named = |e: Error| {
            e.note(format!("the image was given as {image} and the kernel as {kernel}, in the layout {text:?}"))
        };
        let made = bind(Op::new(op), &[self.image, self.kernel]).ok().map_err(named)?;
        made.transpose(self.layout.result_order()).ok()
    }
}

/// A convolution, as networks mean it: every window of the image times the kernel, which is not turned around.
///
/// The layout says which axis is which, as `image,kernel->result`: `N` examples, `C` features, `I` and `O` the features that go into the kernel and come out, and
/// any other letters the axes of places, of which there may be any number. Strides, padding and dilations are in the order in which the kernel has these letters,
/// as in `jax.lax.conv_general_dilated`: by `"NHWC,WHIO->NHWC"` the first stride is that of `W`.
///
/// ```
/// use gradus::prelude::*;
///
/// let image = Array::ones::<f32>([1, 5, 5, 2]);
/// let kernel = Array::ones::<f32>([3, 3, 2, 4]);
/// let y = nn::conv("NHWC,HWIO->NHWC", &image, &kernel, nn::Conv::default().strides([2, 2]).same());
/// assert_eq!(y.shape(), [1, 3, 3, 4]);
/// ```
#[doc(alias = "conv_general_dilated")]
#[doc(alias = "conv2d")]
#[track_caller]
pub fn conv(layout: &str, x: &Array, w: &Array, options: Conv) -> Array {
    on_line(|| {
        let operands = Operands::new(layout, x, w)?;
        let axes = operands.axes();
        let strides = for_each("stride", &options.strides, axes)?;
        let kernel_dilation = for_each("dilation", &options.dilation, axes)?;
        let image_dilation = for_each("image dilation", &options.image_dilation, axes)?;
        let sizes: Vec<Dim> = operands.sizes().iter().zip(&image_dilation).map(|(n, d)| reach(n, *d)).collect();
        let around = options.padding.amounts(&sizes, &operands.reaches(&kernel_dilation), &strides)?;
        let (low, high) = around.into_iter().unzip();
        operands.run(Convolve {
            strides,
            low,
            high,
            image_dilation,
            kernel_dilation,
            feature_groups: options.groups,
            batch_groups: options.batch_groups,
        })
    })
}

/// A convolution that makes images larger: the image has zeros between its elements, so many that strides become steps of the result. As `jax.lax.conv_transpose`:
/// with no padding every element of the image reaches the result with the whole kernel, and with [`Conv::same`] the result is the image times the strides.
///
/// ```
/// use gradus::prelude::*;
///
/// let image = Array::ones::<f32>([1, 4, 4, 3]);
/// let kernel = Array::ones::<f32>([2, 2, 3, 5]);
/// let y = nn::conv_transpose("NHWC,HWIO->NHWC", &image, &kernel, nn::Conv::default().strides([2, 2]));
/// assert_eq!(y.shape(), [1, 8, 8, 5]);
/// ```
#[doc(alias = "deconv")]
#[track_caller]
pub fn conv_transpose(layout: &str, x: &Array, w: &Array, options: Conv) -> Array {
    on_line(|| {
        let operands = Operands::new(layout, x, w)?;
        let axes = operands.axes();
        if options.image_dilation.is_some() {
            return refuse(
                ErrorKind::Value,
                "a transposed convolution with a dilation of the image",
                "its strides are that: write them alone",
            );
        }
        let strides = for_each("stride", &options.strides, axes)?;
        let kernel_dilation = for_each("dilation", &options.dilation, axes)?;
        let reaches = operands.reaches(&kernel_dilation);
        let around = match &options.padding {
            Padding::Pairs(_) => options.padding.amounts(&operands.sizes(), &reaches, &strides)?,
            other => reaches.iter().zip(&strides).map(|(k, s)| whole(k, *s, matches!(other, Padding::Same))).collect(),
        };
        let (low, high) = around.into_iter().unzip();
        operands.run(Convolve {
            strides: vec![1; axes],
            low,
            high,
            image_dilation: strides,
            kernel_dilation,
            feature_groups: options.groups,
            batch_groups: options.batch_groups,
        })
    })
}

/// The padding of a transposed convolution: everything that the kernel reaches, or the image times the stride.
fn whole(reach: &Dim, stride: usize, same: bool) -> (Dim, Dim) {
    let one = Dim::from(1usize);
    let (total, low) = if same {
        let total = reach + stride - 2usize;
        // Rounded up, but never more than the kernel reaches back.
        let low = (&total + 1usize).floor_div(&Dim::from(2usize)).min(&(reach - &one));
        (total, low)
    } else {
        let total = reach + stride - 2usize + (reach - stride).max(&Dim::from(0usize));
        (total, reach - &one)
    };
    (low.clone(), total - low)
}
