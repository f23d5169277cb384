package braid.launcher.cli.jupyter;

import java.awt.BasicStroke;
import java.awt.Color;
import java.awt.RenderingHints;
import java.awt.geom.Path2D;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import javax.imageio.ImageIO;

/// The kernel's logo: three strands, braided. Drawn, so that no picture lies among the sources.
final class Logo {
  /// The sizes Jupyter asks for.
  static final int[] SIZES_PIXELS = {32, 64};

  private static final Color[] STRANDS = {
    new Color(0x1B4F72), new Color(0xD35400), new Color(0x2E86C1)
  };

  /// One strand's way through the picture, cut where another passes over it.
  private static final int STEPS = 96;

  private Logo() {}

  static byte[] png(int pixels) throws IOException {
    var image = new BufferedImage(pixels, pixels, BufferedImage.TYPE_INT_ARGB);
    var pen = image.createGraphics();
    try {
      pen.setRenderingHint(RenderingHints.KEY_ANTIALIASING, RenderingHints.VALUE_ANTIALIAS_ON);
      pen.setStroke(new BasicStroke(pixels * 0.14f, BasicStroke.CAP_BUTT, BasicStroke.JOIN_ROUND));
      // from the back to the front: a strand is in front where its second wave is high
      for (int layer = 0; layer < 2; layer++) {
        for (int strand = 0; strand < STRANDS.length; strand++) {
          pen.setColor(STRANDS[strand]);
          for (int step = 0; step < STEPS; step++) {
            if (isInFront(strand, step) == (layer == 1)) {
              pen.draw(piece(strand, step, pixels));
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

  private static Path2D piece(int strand, int step, int pixels) {
    var path = new Path2D.Double();
    path.moveTo(x(strand, step, pixels), y(step, pixels));
    // a little too long, so that no gap shows between pieces
    path.lineTo(x(strand, step + 1.4, pixels), y(step + 1.4, pixels));
    return path;
  }

  private static double x(int strand, double step, int pixels) {
    return pixels * (0.5 + 0.33 * Math.sin(phase(strand, step)));
  }

  private static double y(double step, int pixels) {
    return pixels * (0.03 + 0.94 * step / STEPS);
  }
}
