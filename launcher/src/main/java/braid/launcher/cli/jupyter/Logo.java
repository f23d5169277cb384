package braid.launcher.cli.jupyter;

import java.awt.AlphaComposite;
import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.RenderingHints;
import java.awt.geom.Path2D;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import javax.imageio.ImageIO;

/// The kernel's logo: three braided strands, drawn by code.
final class Logo {
  /// Sizes that Jupyter needs.
  static final int[] SIZES_PIXELS = {32, 64};

  private static final Color[] STRANDS = {
    new Color(0x1B4F72), new Color(0xD35400), new Color(0x2E86C1)
  };

  private static final int STEPS = 96;

  /// Overlap of a piece with the previous one, so that no seam shows.
  private static final double OVERLAP_STEPS = 1;

  private Logo() {}

  static byte[] png(int pixels) throws IOException {
    var image = new BufferedImage(pixels, pixels, BufferedImage.TYPE_INT_ARGB);
    var pen = image.createGraphics();
    try {
      pen.setRenderingHint(RenderingHints.KEY_ANTIALIASING, RenderingHints.VALUE_ANTIALIAS_ON);
      // strands behind first; a strand in front cuts a gap into them
      for (boolean front : new boolean[] {false, true}) {
        for (int strand = 0; strand < STRANDS.length; strand++) {
          for (int step = 0; step < STEPS; step = end(strand, step)) {
            if (isInFront(strand, step) == front) {
              draw(pen, strand, step, pixels);
            }
          }
        }
      }
    } finally {
      pen.dispose();
    }
    var png = new ByteArrayOutputStream();
    ImageIO.write(image, "png", png);
    return png.toByteArray();
  }

  private static double phase(int strand, double step) {
    return 2 * Math.PI * (1.5 * step / STEPS + strand / 3.0);
  }

  private static boolean isInFront(int strand, int step) {
    return Math.sin(2 * phase(strand, step + 0.5)) > 0;
  }

  /// Returns the end of the piece that contains `step`, where the strand goes behind or comes to
  /// the front.
  private static int end(int strand, int step) {
    int end = step + 1;
    while (end < STEPS && isInFront(strand, end) == isInFront(strand, step)) {
      end++;
    }
    return end;
  }

  private static void draw(Graphics2D pen, int strand, int start, int pixels) {
    var piece = new Path2D.Double();
    piece.moveTo(x(strand, start - OVERLAP_STEPS, pixels), y(start - OVERLAP_STEPS, pixels));
    for (int step = start; step <= end(strand, start); step++) {
      piece.lineTo(x(strand, step, pixels), y(step, pixels));
    }
    if (isInFront(strand, start)) {
      pen.setComposite(AlphaComposite.Clear);
      pen.setStroke(stroke(0.20f * pixels));
      pen.draw(piece);
      pen.setComposite(AlphaComposite.SrcOver);
    }
    pen.setColor(STRANDS[strand]);
    pen.setStroke(stroke(0.14f * pixels));
    pen.draw(piece);
  }

  private static BasicStroke stroke(float pixels) {
    return new BasicStroke(pixels, BasicStroke.CAP_BUTT, BasicStroke.JOIN_ROUND);
  }

  private static double x(int strand, double step, int pixels) {
    return pixels * (0.5 + 0.33 * Math.sin(phase(strand, step)));
  }

  private static double y(double step, int pixels) {
    return pixels * (0.03 + 0.94 * step / STEPS);
  }
}
