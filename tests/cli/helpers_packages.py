# SPDX-License-Identifier: MIT
"""What the tests of the Debian and RPM packages share: two builds at different places, and
roots to install them into."""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

import pytest

from helpers import BUILD, ROOT

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ROOMS = ("base", "netlink", "ibmad", "modules", "agent", "selftest")
# of vendors, opened where they are: no package may need them
VENDORS = {"libcuda.so.1", "libnccl.so.2", "libgdrapi.so.2", "libnvidia-ml.so.1"}


def need_tools(*tools):
    """Skips without them, or without root."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        pytest.skip("no %s here: make test installs it on Debian" % ", ".join(missing))
    if os.geteuid() != 0:
        pytest.skip("needs root: packages are installed into a root of their own")


def version():
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
        return re.search(r"^VERSION := (\S+)$", file.read(), re.M).group(1)


def must(argv, **options):
    done = subprocess.run(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, timeout=900, **options)
    assert done.returncode == 0, "%s: %d\n%s" % (argv, done.returncode, done.stdout[-4000:])
    return done.stdout


def build_twice(target, where):
    """make TARGET here, and from the unpacked tarball of that at another place with another
    umask, time zone, home and language; the two folders of packages."""
    folders = [where / "one", where / "elsewhere" / "two"]
    must(["make", "-s", "-C", ROOT, target, "BUILD=%s" % folders[0]],
         env={"PATH": PATH, "HOME": "/root", "LC_ALL": "C", "TZ": "UTC"})
    tree = where / "a" / "longer" / "way" / "to" / "it"
    tree.mkdir(parents=True)
    must(["tar", "-xf", folders[0] / "packages" / ("nodeprep-%s.tar.xz" % version()), "-C", tree])
    must(["make", "-s", "-C", tree / ("nodeprep-" + version()), target, "BUILD=%s" % folders[1]],
         umask=0o027, env={"PATH": PATH, "HOME": str(where), "LC_ALL": "C.UTF-8", "USER": "other",
                           "TZ": "Pacific/Kiritimati", "MAKEFLAGS": ""})
    return [folder / "packages" for folder in folders]


def digests(folder, *patterns):
    """File name to digest."""
    files = [path for pattern in patterns for path in glob.glob(os.path.join(folder, pattern))]
    result = {}
    for path in files:
        with open(path, "rb") as file:
            result[os.path.basename(path)] = hashlib.sha256(file.read()).hexdigest()
    return result


def opened_libraries():
    """Room to the sonames that its files open by dlopen, as the sources have them."""
    found = {}
    for room in ROOMS:
        for path in glob.glob(os.path.join(ROOT, room, "*.c")):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            if "dlopen(" in text:
                names = re.findall(r'"(lib[\w-]+\.so\.\d+)"', text)
                found.setdefault("selftest" if room == "selftest" else "agent", set()).update(names)
    return found


def elf_needs(path):
    return set(re.findall(r"\(NEEDED\).*\[(\S+)\]", must(["readelf", "-d", path])))


class Space:
    """A root in namespaces of its own, with a network of its own. What is written to it
    lies in memory and is gone with it; `base` stays as it is."""

    SCRIPT = """set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$1"
mkdir "$1/up" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/up,workdir=$1/work" none "$1/root"
mkdir -p "$1/root/proc" "$1/root/sys" "$1/root/run" "$1/root/dev"
mount -t proc none "$1/root/proc"
mount -t sysfs none "$1/root/sys"
mount -t tmpfs -o mode=755 none "$1/root/run"
mount -t tmpfs -o mode=755 none "$1/root/dev"
for dev in null zero full random urandom; do
    : >"$1/root/dev/$dev"
    mount --bind "/dev/$dev" "$1/root/dev/$dev"
done
echo ready
exec sleep infinity
"""

    def __init__(self, base):
        self.top = tempfile.mkdtemp(prefix="nodeprep-root-")
        # pylint: disable-next=consider-using-with
        self.holder = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--ipc",
             "sh", "-c", self.SCRIPT, "sh", self.top, str(base)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        ready = self.holder.stdout.readline()
        assert ready == "ready\n", "no root of its own could be made"
        with open("/proc/%d/task/%d/children" % (self.holder.pid, self.holder.pid),
                  encoding="ascii") as file:
            self.pid = file.read().split()[0]

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        os.rmdir(self.top)

    def outside(self, *argv, **options):
        """Runs what is on this machine, with the root at its place, ROOT in argv."""
        argv = [str(word).replace("ROOT", self.top + "/root") for word in argv]
        return subprocess.run(["nsenter", "-t", self.pid, "-m", "-p", "-n", "-u", "-i", "--", *argv],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, check=False, timeout=300, **options)

    def run(self, script):
        """Runs a shell script in the root."""
        return self.outside("chroot", "ROOT", "/usr/bin/env", "-i", "PATH=" + PATH, "HOME=/root",
                            "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "/bin/sh", "-c", script)

    def ok(self, script):
        done = self.run(script)
        assert done.returncode == 0, "%s: %d\n%s" % (script, done.returncode, done.stdout)
        return done.stdout

    def exists(self, path):
        return self.run('[ -e "%s" ] || [ -L "%s" ]' % (path, path)).returncode == 0

    def write(self, path, text, mode="0644"):
        done = self.outside("sh", "-c", 'mkdir -p "${1%/*}" && printf %s "$2" >"$1" && chmod $3 "$1"',
                            "sh", "ROOT" + path, text, mode)
        assert done.returncode == 0, done.stdout

    def put(self, source, folder):
        done = self.outside("sh", "-c", 'mkdir -p "$2" && cp -- "$1" "$2/"', "sh", source,
                            "ROOT" + folder)
        assert done.returncode == 0, done.stdout


def debian_sources():
    """The lines of this system's own sources of Debian packages."""
    said = subprocess.run(["apt-get", "indextargets", "--format",
                           "deb $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages",
                           "Origin: Debian"], text=True, capture_output=True, check=False)
    return sorted(set(said.stdout.splitlines()))


def debian_root(packages, depends):
    """A Debian of apt and what is essential, with the packages that `depends` names at hand
    but not installed. Made once for each list; skips where Debian cannot be reached."""
    sources = debian_sources()
    with open("/etc/os-release", encoding="utf-8") as file:
        suite = re.search(r"^VERSION_CODENAME=(\w+)", file.read(), re.M)
    if not sources or not suite:
        pytest.skip("no sources of Debian packages here")
    key = hashlib.sha256(repr((sources, suite.group(1), depends, 1)).encode()).hexdigest()[:12]
    cache = os.path.join(BUILD, "packages-root")
    base = os.path.join(cache, key)
    if os.path.isdir(base):
        return base
    shutil.rmtree(cache, ignore_errors=True)
    os.makedirs(cache)
    debs = " ".join("/srv/deb/" + os.path.basename(path) for path in packages)
    done = subprocess.run(
        ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", "--format=directory",
         "--skip=cleanup/apt", "--aptopt=Acquire::Retries \"5\"",
         "--customize-hook=mkdir \"$1/srv/deb\" && cp %s \"$1/srv/deb/\"" % " ".join(packages),
         "--customize-hook=chroot \"$1\" apt-get clean",
         "--customize-hook=chroot \"$1\" apt-get -q install -y --download-only "
         "--no-install-recommends %s" % debs,
         "--customize-hook=rm -r \"$1/srv/deb\"", suite.group(1), base + ".new", *sources],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=900)
    if done.returncode != 0:
        shutil.rmtree(base + ".new", ignore_errors=True)
        reached = subprocess.run(["apt-get", "-q", "download", "--print-uris", "base-files"],
                                 capture_output=True, check=False, cwd=cache)
        assert reached.returncode == 0 and re.search(
            r"Failed to fetch|Could not resolve|Temporary failure|Could not connect|"
            r"Unable to connect|Connection (timed out|refused|failed)", done.stdout), \
            done.stdout[-4000:]
        pytest.skip("Debian's packages cannot be reached: " + done.stdout.strip()[-300:])
    os.rename(base + ".new", base)
    return base
