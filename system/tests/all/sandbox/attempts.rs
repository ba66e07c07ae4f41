//! The attempts of a hostile strategy to escape the sandbox.

/// Number of attempts.
pub const COUNT: usize = 30;

/// Makes a page of shared memory.
pub fn shared_page() -> *mut libc::c_void {
    let (read_write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, read_write, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    page
}

/// Makes all attempts, and prints the kernel's results. `file` is open for writing, `page` is a
/// [`shared_page`].
pub fn attempts(file: i32, page: *mut libc::c_void) {
    // SAFETY: getppid has no arguments and cannot fail.
    let parent = unsafe { libc::getppid() };
    let path = c"/etc/passwd".as_ptr();
    let shm = std::ffi::CString::new(format!("/dev/shm/sandbox-test-{}", std::process::id())).unwrap();
    let shm = shm.as_ptr();
    // SAFETY: a CPU set is bits, all of which may be zero.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid CPU set, and so is what the kernel writes into it: the cores that
    // this process may use anyway.
    unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    let byte = 0u8;
    let block = vec![0u8; 4096];
    // The parent has it at the same address.
    static mut PARENT_BYTE: u8 = 0;
    let local = libc::iovec { iov_base: (&raw mut PARENT_BYTE).cast(), iov_len: 1 };
    let remote = local;
    // SAFETY: a socket address is integers, all of which may be zero.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    let address_len = size_of::<libc::sockaddr_in>() as u32;
    let set_len = size_of::<libc::cpu_set_t>();
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    let report = |name: &str, result: i64| {
        let error = std::io::Error::last_os_error();
        eprintln!("{name} {}", if result < 0 { format!("refused {error}") } else { "ALLOWED".into() });
    };
    let nowhere = std::ptr::null_mut();
    let mapped = |address: *mut libc::c_void| if address == libc::MAP_FAILED { -1 } else { 0 };
    // SAFETY: every pointer below is to a live local or a C string literal of the right type and
    // size, or to a mapping that was just made and that nobody else uses; and none of these calls,
    // if it is allowed, touches this process's Rust memory: forks are not followed by anything but
    // `_exit`.
    unsafe {
        report("open", libc::open(path, libc::O_RDONLY).into());
        report("create", libc::open(shm, libc::O_RDWR | libc::O_CREAT, 0o600).into());
        report("unlink", libc::unlink(shm).into());
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        report("socket", socket.into());
        let connected = {
            // To a listening port: its own, if that is allowed.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").ok();
            let port =
                listener.as_ref().and_then(|listener| listener.local_addr().ok()).map_or(9, |at| at.port());
            address.sin_port = port.to_be();
            libc::connect(socket, (&raw const address).cast(), address_len)
        };
        report("connect", connected.into());
        report("signal", libc::kill(parent, libc::SIGCONT).into());
        report("pidfd", libc::syscall(libc::SYS_pidfd_open, parent, 0));
        report("duplicate", libc::dup(file).into());
        // Fills /dev/shm's memory without a name.
        report("memory-file", libc::memfd_create(c"sandbox-test".as_ptr(), 0).into());
        report("ptrace", libc::ptrace(libc::PTRACE_SEIZE, parent, 0, 0));
        report(
            "read-memory",
            libc::process_vm_readv(parent, &raw const local, 1, &raw const remote, 1, 0) as i64,
        );
        report(
            "write-memory",
            libc::process_vm_writev(parent, &raw const local, 1, &raw const remote, 1, 0) as i64,
        );
        report("affinity", libc::sched_setaffinity(parent, set_len, &raw const set).into());
        report("own-affinity", libc::sched_setaffinity(0, set_len, &raw const set).into());
        report("lower-priority", libc::setpriority(libc::PRIO_PROCESS, 0, 5).into());
        report("raise-priority", libc::setpriority(libc::PRIO_PROCESS, 0, -5).into());
        report("change-root", libc::chroot(c"/".as_ptr()).into());
        report("gain", can_gain_privileges());
        report("raise-limit", libc::setrlimit(libc::RLIMIT_FSIZE, &raw const unlimited).into());
        report("truncate", libc::ftruncate(file, 1).into());
        let shared = libc::MAP_SHARED;
        report("map-file", mapped(libc::mmap(nowhere, 4096, libc::PROT_READ, shared, file, 0)));
        let (private, read_write) =
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
        let executable = libc::PROT_READ | libc::PROT_EXEC;
        report("map-executable", mapped(libc::mmap(nowhere, 4096, executable, private, -1, 0)));
        report("take-pages", libc::madvise(page, 4096, libc::MADV_REMOVE).into());
        report("make-executable", libc::mprotect(page, 4096, executable).into());
        report(
            "map-shared",
            mapped(libc::mmap(nowhere, 4096, read_write, shared | libc::MAP_ANONYMOUS, -1, 0)),
        );
        report(
            "much-memory",
            mapped(libc::mmap(nowhere, 1 << 30, read_write, private | libc::MAP_NORESERVE, -1, 0)),
        );
        report("exec", exec(path));
        let forked = libc::fork();
        if forked == 0 {
            libc::_exit(0);
        }
        report("fork", forked.into());
        report("write-file", libc::write(file, (&raw const byte).cast(), 1) as i64);
        let filled = (0..1024).map(|_| libc::write(file, block.as_ptr().cast(), block.len())).min();
        report("fill-file", filled.unwrap_or(0) as i64);
    }
}

/// Returns 0 if a program may gain privileges, -1 if not.
fn can_gain_privileges() -> i64 {
    // SAFETY: the call takes integers.
    let has_no_new_privs = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } != 0;
    if has_no_new_privs { -1 } else { 0 }
}

/// Executes a program in a child, or in this process if there can be none.
///
/// # Safety
/// The path is a C string.
unsafe fn exec(argument: *const libc::c_char) -> i64 {
    let arguments = [argument, std::ptr::null()];
    let mut status = 0;
    // SAFETY: C strings, an array that ends with null, and a live local; the child does nothing but
    // execute and end.
    unsafe {
        let forked = libc::fork();
        if forked <= 0 {
            let failed = libc::execv(c"/bin/true".as_ptr(), arguments.as_ptr());
            if forked == 0 {
                libc::_exit(1);
            }
            return failed.into();
        }
        libc::waitpid(forked, &raw mut status, 0);
    }
    if status == 0 { 0 } else { -1 }
}
