"""The web server of the lab: nginx, with a certificate of the lab's own authority."""

import os
import subprocess

import addresses

SETTINGS = """
user root root; daemon off; master_process off; worker_processes 1; pid {root}/nginx.pid;
error_log {root}/nginx-error.log;
events {{ worker_connections 512; }}
http {{
  client_body_temp_path {root}/t1; proxy_temp_path {root}/t2; fastcgi_temp_path {root}/t3;
  uwsgi_temp_path {root}/t4; scgi_temp_path {root}/t5;
  ssl_protocols TLSv1.2 TLSv1.3;
  log_format seen '$server_addr:$server_port sni=$ssl_server_name host=$http_host $request';
  access_log {root}/web.log seen;
  ssl_certificate {root}/web.pem; ssl_certificate_key {root}/web.key;
  map $http_upgrade $vault_connection {{ default Upgrade; "" close; }}
  {servers}
}}
"""

SERVER = """
  server {{
    {listen}
    server_name {name};
    location / {{
      default_type text/plain;
      return 200 "origin {name}, asked for $http_host, by $server_protocol\\n";
    }}
    location /big {{ root {root}/site; }}
    location /repository.git/ {{ root {root}/site; }}
    location /socket {{
      proxy_pass http://{stub}:80; proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection "Upgrade";
    }}
  }}
"""

VAULT = """
  server {{
    listen {address}:80; listen {address}:443 ssl http2;
    server_name {names};
    ssl_certificate {root}/{certificate}.pem; ssl_certificate_key {root}/{certificate}.key;
    client_max_body_size 0; large_client_header_buffers 8 64k; chunked_transfer_encoding on;
    location / {{
      proxy_pass http://unix:{root}/vault.http; proxy_http_version 1.1;
      proxy_buffering off; proxy_request_buffering off; proxy_set_header Host $http_host;
      proxy_set_header Connection $vault_connection; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header TE $http_te;
      add_trailer X-Trailer "at the end";
    }}
  }}
"""

PLACES = {
    "api.example.test": (addresses.API, addresses.API6),
    "other.example.test": (addresses.OTHER,),
    "git.example.test": (addresses.GIT,),
    "evil.test": (addresses.EVIL, addresses.EVIL6),
}


def settings(root):
    servers = []
    # The last one: the same address serves a forbidden name too, as a content network does.
    for name, places in (*PLACES.items(), ("hidden.test", PLACES["api.example.test"])):
        lines = []
        for place in places:
            host = f"[{place}]" if ":" in place else place
            lines += [f"listen {host}:80;", f"listen {host}:443 ssl http2;",
                      f"listen {host}:8443 ssl http2;", f"listen {host}:8080;"]
        servers.append(SERVER.format(listen="\n    ".join(lines), name=name, root=root,
                                     stub=addresses.STUB))
    certificates = {"web": " ".join(addresses.VAULT_NAMES),
                    **{name: name for name in addresses.BROKEN_NAMES}}
    for certificate, names in certificates.items():
        servers.append(VAULT.format(address=addresses.VAULT, names=names, root=root,
                                    certificate=certificate))
    return SETTINGS.format(root=root, servers="".join(servers))


def openssl(*words):
    subprocess.run(["/usr/bin/openssl", *words], check=True, capture_output=True)


def make_certificates(root):
    """ca.pem, which clients trust, and web.pem with web.key, which it signed."""
    at = f"{root}/".__add__
    names = [f"DNS:{name}" for name in (*addresses.WEB_NAMES, "hidden.test")]
    names += [f"IP:{address}" for address in addresses.WEB_ADDRESSES]
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    openssl("req", "-x509", *key, "-subj", "/CN=Lab authority", "-keyout", at("ca.key"),
            "-out", at("ca.pem"))
    openssl("req", "-x509", *key, "-subj", "/CN=lab", "-keyout", at("web.key"), "-out",
            at("web.pem"), "-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-addext",
            "subjectAltName=" + ",".join(names), "-addext", "basicConstraints=critical,CA:FALSE")


def make_broken_certificates(root):
    """One that has expired, one that nobody signed, and one of another name."""
    expired, self_signed, misnamed = addresses.BROKEN_NAMES
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name, said, days in ((expired, expired, "-1"), (misnamed, "elsewhere.test", "2")):
        at = f"{root}/{name}".__add__
        openssl("req", "-new", *key, "-subj", "/CN=lab", "-keyout", at(".key"), "-out", at(".csr"),
                "-addext", f"subjectAltName=DNS:{said}")
        openssl("x509", "-req", "-in", at(".csr"), "-out", at(".pem"), "-days", days, "-CA",
                f"{root}/ca.pem", "-CAkey", f"{root}/ca.key", "-copy_extensions", "copyall")
    at = f"{root}/{self_signed}".__add__
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=lab", "-keyout", at(".key"), "-out",
            at(".pem"), "-addext", f"subjectAltName=DNS:{self_signed}")


def make_site(root):
    """A large file, and a git repository as plain files."""
    site = f"{root}/site"
    os.makedirs(f"{site}/big")
    with open(f"{site}/big/file", "wb") as file:
        file.write(bytes(range(256)) * 16384)  # 4 MiB
    work, bare = f"{root}/repository", f"{site}/repository.git"
    os.makedirs(work)
    with open(f"{work}/note", "w", encoding="utf-8") as file:
        file.write("a note\n")
    env = {"PATH": os.defpath, "HOME": root, "GIT_CONFIG_NOSYSTEM": "1",
           **{f"GIT_{who}_{what}": "lab@example.test" for who in ("AUTHOR", "COMMITTER")
              for what in ("NAME", "EMAIL")}}
    for words in (("init", "-q", "-b", "main", work), ("-C", work, "add", "note"),
                  ("-C", work, "commit", "-q", "-m", "first"),
                  ("clone", "-q", "--bare", work, bare), ("-C", bare, "update-server-info")):
        subprocess.run(["/usr/bin/git", *words], check=True, env=env, capture_output=True)


def prepare(root):
    make_certificates(root)
    make_broken_certificates(root)
    make_site(root)
    with open(f"{root}/nginx.conf", "w", encoding="utf-8") as file:
        file.write(settings(root))


def start(root):
    path = f"{root}/nginx.conf"
    return subprocess.Popen(["/usr/sbin/nginx", "-c", path, "-e", f"{root}/nginx-error.log"],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
