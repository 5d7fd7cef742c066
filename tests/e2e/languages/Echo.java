import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;

/** Four threads talk to an echo service on the loopback interface; then a process is tried. */
class Echo {
  static final int THREADS = 4;

  static Void serve(ServerSocket listener) throws IOException {
    for (int served = 0; served < THREADS; served++) {
      try (Socket connection = listener.accept()) {
        connection.getInputStream().transferTo(connection.getOutputStream());
      }
    }
    return null;
  }

  static boolean talk(ServerSocket listener, byte text) throws IOException {
    try (Socket connection = new Socket(listener.getInetAddress(), listener.getLocalPort())) {
      connection.getOutputStream().write(text);
      connection.shutdownOutput();
      return connection.getInputStream().read() == text;
    }
  }

  static int canStartAProcess(String program) throws InterruptedException {
    try {
      new ProcessBuilder(program, "--version").start().waitFor();
      return 1;
    } catch (IOException refused) {
      return 0;
    }
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(THREADS + 1);
    try (ServerSocket listener = new ServerSocket(0, THREADS, InetAddress.getLoopbackAddress())) {
      threads.submit(() -> serve(listener));
      List<Callable<Boolean>> talkers = IntStream.range(0, THREADS)
          .mapToObj(i -> (Callable<Boolean>) () -> talk(listener, (byte) i)).toList();
      int echoed = 0;
      for (var talker : threads.invokeAll(talkers)) {
        echoed += talker.get() ? 1 : 0;
      }
      String program = ProcessHandle.current().info().command().orElse("java");
      System.out.printf("echoed %d, started %d%n", echoed, canStartAProcess(program));
    } finally {
      threads.shutdown();
    }
  }
}
