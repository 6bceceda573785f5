//! Layouts as text: which axis of an array means what, one letter for each, as in `"NHWC,HWIO->NHWC"`.

use gradus_core::{ErrorKind, Result};

use crate::line::refuse;

/// The axes of an image: where examples and features are, and the letters of the others in their order.
pub(super) struct Image {
    letters: Vec<char>,
    pub(super) spatial: Vec<char>,
}

impl Image {
    /// Reads a layout such as `NHWC`: `N` for the examples, `C` for the features, any other letter for an axis of places.
    pub(super) fn read(text: &str) -> Result<Image> {
        let letters = letters(text, ['N', 'C'])?;
        let spatial = letters.iter().copied().filter(|c| !['N', 'C'].contains(c)).collect();
        Ok(Image { letters, spatial })
    }

    pub(super) fn rank(&self) -> usize {
        self.letters.len()
    }

    /// For each axis of `[N, spatial.., C]`, which axis of this layout it is.
    pub(super) fn order(&self, spatial: &[char]) -> Vec<usize> {
        let wanted = std::iter::once('N').chain(spatial.iter().copied()).chain(['C']);
        wanted.filter_map(|c| self.letters.iter().position(|l| *l == c)).collect()
    }

    pub(super) fn letters(&self) -> &[char] {
        &self.letters
    }
}

/// A layout of a convolution: image, kernel, result.
pub(super) struct Layout {
    pub(super) image: Image,
    kernel: Vec<char>,
    result: Image,
    /// The axes of places in the order of the kernel: strides and the like are said in it, as in JAX.
    spatial: Vec<char>,
}

impl Layout {
    /// Reads `image,kernel->result`. In the kernel `I` stands for the features that go in and `O` for those that come out.
    pub(super) fn read(text: &str) -> Result<Layout> {
        let parts = text.split_once("->").and_then(|(left, result)| Some((left.split_once(',')?, result)));
        let Some(((image, kernel), result)) = parts else {
            return refuse(
                ErrorKind::Parse,
                format!("the layout {text:?} is not of the form image,kernel->result"),
                "write it as in \"NHWC,HWIO->NHWC\"",
            );
        };
        let (image, result) = (Image::read(image)?, Image::read(result)?);
        let kernel = letters(kernel, ['I', 'O'])?;
        let sorted = |letters: &[char]| {
            let mut all: Vec<char> = letters.iter().copied().filter(|c| !['I', 'O'].contains(c)).collect();
            all.sort_unstable();
            all
        };
        let places = sorted(&image.spatial);
        if sorted(&kernel) != places || sorted(&result.spatial) != places {
            return refuse(
                ErrorKind::Parse,
                format!("the layout {text:?} has other axes of places in the image than in the kernel or the result"),
                "besides N, C, I and O the three parts have the same letters",
            );
        }
        let spatial = kernel.iter().copied().filter(|c| !['I', 'O'].contains(c)).collect();
        Ok(Layout { image, kernel, result, spatial })
    }

    /// The letters of the kernel.
    pub(super) fn kernel(&self) -> &[char] {
        &self.kernel
    }

    /// For each axis of `[spatial.., I, O]`, which axis of the kernel it is.
    pub(super) fn kernel_order(&self) -> Vec<usize> {
        let wanted = self.spatial.iter().copied().chain(['I', 'O']);
        wanted.filter_map(|c| self.kernel.iter().position(|l| *l == c)).collect()
    }

    /// For each axis of `[N, spatial.., C]`, which axis of the image it is.
    pub(super) fn image_order(&self) -> Vec<usize> {
        self.image.order(&self.spatial)
    }

    /// For each axis of the result, which axis of `[N, spatial.., C]` it is.
    pub(super) fn result_order(&self) -> Vec<usize> {
        back(&self.result.order(&self.spatial))
    }
}

/// The order that undoes an order.
pub(super) fn back(order: &[usize]) -> Vec<usize> {
    (0..order.len()).map(|a| order.iter().position(|o| *o == a).unwrap_or(a)).collect()
}

/// The letters of one part, each once, the two that must be there among them.
fn letters(text: &str, needed: [char; 2]) -> Result<Vec<char>> {
    let letters: Vec<char> = text.trim().chars().collect();
    let help = format!("each axis has one letter; {} and {} must be there", needed[0], needed[1]);
    if let Some(odd) = letters.iter().find(|c| !c.is_alphanumeric()) {
        return refuse(ErrorKind::Parse, format!("{odd:?} in the layout {text:?} is no letter"), help);
    }
    if let Some(c) = letters.iter().enumerate().find(|(i, c)| letters[..*i].contains(c)).map(|(_, c)| c) {
        return refuse(ErrorKind::Parse, format!("the layout {text:?} has {c} twice"), help);
    }
    if let Some(c) = needed.iter().find(|c| !letters.contains(c)) {
        return refuse(ErrorKind::Parse, format!("the layout {text:?} has no {c}"), help);
    }
    Ok(letters)
}
