//! A backend for plotters that writes what a stylesheet and a changing width need.
//!
//! Plotters' own SVG backend puts colours, text and circles into fixed pixels. Here every series becomes one
//! path with a class and nothing else: colour, stroke and dashes come from the page's stylesheet (so light,
//! dark and print are one drawing), text is the page's HTML, and the drawing may be stretched because strokes
//! do not scale. A colour is only a name: [`Pen`] number 2 is the third class that the drawing was given.
//!
//! A pixel is a cell. Dots are collected in a grid and written once per cell, neighbours above each other
//! as one stroke, which is what keeps a million operations a small page.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::style::Color;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

/// What drawing into memory can fail with: nothing but the chart's own layout.
pub(crate) type DrawError = DrawingAreaErrorKind<Infallible>;

/// The area that a drawing is made on.
pub(crate) type Area<'a> = DrawingArea<Strokes<'a>, Shift>;

/// A series, by its place among the drawing's classes.
#[derive(Clone, Copy)]
pub(crate) struct Pen(pub(crate) u8);

impl Color for Pen {
    fn to_backend_color(&self) -> BackendColor {
        BackendColor { alpha: 1.0, rgb: (self.0, 0, 0) }
    }
}

/// What stands around a drawing.
pub(crate) struct Frame<'a> {
    /// Cells across and down.
    pub(crate) size: (u32, u32),
    /// Class of the `svg` element.
    pub(crate) class: &'a str,
    /// One class for each series.
    pub(crate) series: &'a [&'static str],
    /// What the drawing shows, for those who do not see it. Escaped by the caller.
    pub(crate) label: &'a str,
}

/// Makes a drawing and returns the `svg` element.
pub(crate) fn draw<F>(frame: &Frame<'_>, make: F) -> String
where
    F: FnOnce(&Area<'_>) -> Result<(), DrawError>,
{
    let (width, height) = frame.size;
    let mut out = format!(
        "<svg class=\"{}\" viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{}\">",
        frame.class, frame.label
    );
    let area = Strokes::new(frame, &mut out).into_drawing_area();
    // Memory does not fail, and what a chart cannot lay out (a range without a length) leaves the drawing
    // empty.
    let _ = make(&area).and_then(|()| area.present());
    drop(area);
    out.push_str("</svg>");
    out
}

/// The backend: collects one path for each series and writes them when it is presented.
pub(crate) struct Strokes<'a> {
    size: (u32, u32),
    series: Vec<Series>,
    out: &'a mut String,
}

struct Series {
    class: &'static str,
    path: Path,
    dots: Vec<bool>,
}

/// A path under construction, in relative steps because they are short.
#[derive(Default)]
struct Path {
    data: String,
    at: BackendCoord,
}

impl Path {
    fn move_to(&mut self, (x, y): BackendCoord) {
        if self.data.is_empty() {
            let _ = write!(self.data, "M{x} {y}");
        } else if (x, y) != self.at {
            self.data.push('m');
            self.pair(x - self.at.0, y - self.at.1);
        }
        self.at = (x, y);
    }

    fn line_to(&mut self, (x, y): BackendCoord) {
        let (dx, dy) = (x - self.at.0, y - self.at.1);
        if dy == 0 {
            let _ = write!(self.data, "h{dx}");
        } else if dx == 0 {
            let _ = write!(self.data, "v{dy}");
        } else {
            self.data.push('l');
            self.pair(dx, dy);
        }
        self.at = (x, y);
    }

    /// Two numbers; a minus sign separates as well as a space does.
    fn pair(&mut self, dx: i32, dy: i32) {
        let space = if dy < 0 { "" } else { " " };
        let _ = write!(self.data, "{dx}{space}{dy}");
    }

    fn polygon(&mut self, corners: impl IntoIterator<Item = BackendCoord>) {
        let mut corners = corners.into_iter();
        let Some(first) = corners.next() else { return };
        self.move_to(first);
        for corner in corners {
            self.line_to(corner);
        }
        self.data.push('z');
        self.at = first;
    }
}

impl<'a> Strokes<'a> {
    fn new(frame: &Frame<'_>, out: &'a mut String) -> Self {
        let series = frame
            .series
            .iter()
            .map(|class| Series { class, path: Path::default(), dots: Vec::new() })
            .collect();
        Self { size: frame.size, series, out }
    }

    fn series(&mut self, color: BackendColor) -> Option<&mut Series> {
        self.series.get_mut(usize::from(color.rgb.0))
    }

    fn dot(&mut self, (x, y): BackendCoord, color: BackendColor) {
        let (width, height) = self.size;
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        let (Ok(width), Ok(height)) = (usize::try_from(width), usize::try_from(height)) else { return };
        if x >= width || y >= height {
            return;
        }
        if let Some(series) = self.series(color) {
            series.dots.resize(width * height, false);
            // Column by column, so that dots above each other are neighbours.
            series.dots[x * height + y] = true;
        }
    }
}

/// Writes the dots of a series: each run of neighbours in a column is one stroke.
fn write_dots(series: &mut Series, height: usize) {
    let dots = std::mem::take(&mut series.dots);
    for (x, column) in (0_i32..).zip(dots.chunks(height.max(1))) {
        let mut cells = (0_i32..).zip(column).peekable();
        while let Some((from, set)) = cells.next() {
            if !*set {
                continue;
            }
            let mut to = from;
            while let Some((y, _)) = cells.next_if(|(_, set)| **set) {
                to = y;
            }
            series.path.move_to((x, from));
            // A line of no length is a dot, because strokes have round ends.
            if from == to { series.path.line_to((x, from)) } else { series.path.line_to((x, to)) }
        }
    }
}

impl DrawingBackend for Strokes<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    fn present(&mut self) -> Result<(), DrawingErrorKind<Infallible>> {
        let height = usize::try_from(self.size.1).unwrap_or(usize::MAX);
        for series in &mut self.series {
            write_dots(series, height);
            if !series.path.data.is_empty() {
                let _ = write!(self.out, "<path class=\"{}\" d=\"{}\"/>", series.class, series.path.data);
            }
            series.path = Path::default();
        }
        Ok(())
    }

    fn draw_pixel(
        &mut self,
        point: BackendCoord,
        color: BackendColor,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.dot(point, color);
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.draw_path([from, to], style)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        if let Some(series) = self.series(style.color()) {
            let mut points = path.into_iter();
            if let Some(first) = points.next() {
                series.path.move_to(first);
                for point in points {
                    series.path.line_to(point);
                }
            }
        }
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        if let Some(series) = self.series(style.color()) {
            series.path.polygon([(left, top), (right, top), (right, bottom), (left, bottom)]);
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        _radius: u32,
        style: &S,
        _fill: bool,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        self.dot(center, style.color());
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        if let Some(series) = self.series(style.color()) {
            series.path.polygon(corners);
        }
        Ok(())
    }

    /// Text is HTML, beside the drawing: nothing is written here.
    fn draw_text<T: BackendTextStyle>(
        &mut self,
        _text: &str,
        _style: &T,
        _at: BackendCoord,
    ) -> Result<(), DrawingErrorKind<Infallible>> {
        Ok(())
    }

    /// No text, hence no room for it; the estimate of the trait would look for fonts.
    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        _text: &str,
        _style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok((0, 0))
    }
}

#[cfg(test)]
mod tests {
    use plotters::prelude::*;

    use super::*;

    fn frame(series: &'static [&'static str]) -> Frame<'static> {
        Frame { size: (100, 50), class: "x", series, label: "a drawing" }
    }

    #[test]
    fn a_series_is_one_path_with_a_class_and_no_colour() {
        let drawn = draw(&frame(&["w", "r"]), |area| {
            let mut chart = ChartBuilder::on(area).build_cartesian_2d(0.0..10.0, 0.0..10.0)?;
            chart.draw_series(LineSeries::new([(0.0, 0.0), (5.0, 5.0), (10.0, 5.0)], Pen(1)))?;
            Ok(())
        });
        assert_eq!(drawn.matches("<path").count(), 1);
        assert!(drawn.contains("class=\"r\""), "{drawn}");
        assert!(!drawn.contains("stroke") && !drawn.contains('#') && !drawn.contains("<text"), "{drawn}");
    }

    #[test]
    fn a_dot_is_drawn_once_per_cell_and_neighbours_are_one_stroke() {
        let drawn = draw(&frame(&["w"]), |area| {
            for _ in 0..1000 {
                for y in [3, 4, 5, 9] {
                    area.draw_pixel((7, y), &Pen(0))?;
                }
            }
            Ok(())
        });
        assert!(drawn.contains("d=\"M7 3v2m0 4h0\""), "{drawn}");
    }

    #[test]
    fn dots_outside_the_drawing_are_left_out() {
        let drawn = draw(&frame(&["w"]), |area| {
            area.draw_pixel((-1, 0), &Pen(0))?;
            area.draw_pixel((100, 0), &Pen(0))
        });
        assert!(!drawn.contains("<path"), "{drawn}");
    }
}
