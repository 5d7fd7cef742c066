import java.net.Socket;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509TrustManager;

/** Trusted PORT...: asks each server at localhost. Trusted -roots: how many are a sandbox's own. */
public class Trusted {
  public static void main(String[] words) throws Exception {
    if (words[0].equals("-roots")) {
      TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
      factory.init((KeyStore) null);
      X509Certificate[] roots =
          ((X509TrustManager) factory.getTrustManagers()[0]).getAcceptedIssuers();
      System.out.println(
          Arrays.stream(roots)
              .filter(root -> root.getSubjectX500Principal().getName().contains("capgate sandbox"))
              .count());
      return;
    }
    SSLSocketFactory factory = (SSLSocketFactory) SSLSocketFactory.getDefault();
    for (String port : words) {
      Socket plain = new Socket("127.0.0.1", Integer.parseInt(port));
      try (SSLSocket socket =
          (SSLSocket) factory.createSocket(plain, "localhost", Integer.parseInt(port), true)) {
        SSLParameters parameters = socket.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS");
        socket.setSSLParameters(parameters);
        socket.getOutputStream().write("GET / HTTP/1.0\r\n\r\n".getBytes());
        socket.getInputStream().read();
      } catch (java.io.IOException refused) {
        // The server tells what it got.
      }
    }
  }
}
