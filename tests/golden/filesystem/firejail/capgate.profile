caps.drop all
nonewprivs
noroot
nogroups
net none
ipc-namespace
hostname capgate
dbus-user none
dbus-system none
machine-id
no3d
noinput
nosound
notv
nou2f
novideo
private-dev
private-tmp
x11 none
noblacklist /bin
noblacklist /dev
noblacklist /etc
noblacklist /lib
noblacklist /lib32
noblacklist /lib64
noblacklist /libx32
noblacklist /proc
noblacklist /run
noblacklist /sbin
noblacklist /tmp
noblacklist /usr
noblacklist /workspace
noblacklist /run/firejail
blacklist /*
blacklist /run/*
private-etc alternatives,ca-certificates,ld.so.cache,ld.so.conf,ld.so.conf.d,mime.types,os-release,pki,protocols,services,ssl
read-write /workspace
noexec /workspace
read-only /workspace/.bash_profile
read-only /workspace/.bashrc
read-only /workspace/.claude/agents
read-only /workspace/.claude/commands
read-only /workspace/.claude/settings.json
read-only /workspace/.claude/settings.local.json
read-only /workspace/.codex/config.toml
read-only /workspace/.cursor/mcp.json
read-only /workspace/.devcontainer
read-only /workspace/.envrc
read-only /workspace/.factory/mcp.json
read-only /workspace/.gemini/settings.json
read-only /workspace/.git/commondir
read-only /workspace/.git/config
read-only /workspace/.git/config.worktree
read-only /workspace/.git/hooks
read-only /workspace/.gitconfig
read-only /workspace/.github/workflows
read-only /workspace/.gitmodules
read-only /workspace/.husky
read-only /workspace/.idea
read-only /workspace/.kiro/settings/mcp.json
read-only /workspace/.mcp.json
read-only /workspace/.npmrc
read-only /workspace/.pnp.cjs
read-only /workspace/.pre-commit-config.yaml
read-only /workspace/.profile
read-only /workspace/.ripgreprc
read-only /workspace/.roo/mcp.json
read-only /workspace/.tool-versions
read-only /workspace/.vscode
read-only /workspace/.vscode/mcp.json
read-only /workspace/.yarnrc
read-only /workspace/.yarnrc.yml
read-only /workspace/.zed/settings.json
read-only /workspace/.zprofile
read-only /workspace/.zshrc
read-only /workspace/opencode.json
read-only /workspace/opencode.jsonc
protocol inet,inet6
seccomp.block-secondary
seccomp-error-action ENOSYS
seccomp.keep accept,accept4,access,alarm,arch_prctl,bind,brk,cachestat,capget,capset,chdir,chmod,chown,clock_getres,clock_gettime,clock_nanosleep,clone,close,close_range,connect,copy_file_range,creat,dup,dup2,dup3,epoll_create,epoll_create1,epoll_ctl,epoll_pwait,epoll_pwait2,epoll_wait,eventfd,eventfd2,execve,exit,exit_group,faccessat,faccessat2,fadvise64,fallocate,fchdir,fchmod,fchmodat,fchmodat2,fchown,fchownat,fcntl,fdatasync,fgetxattr,flistxattr,flock,fremovexattr,fsetxattr,fstat,fstatfs,fsync,ftruncate,futex,futex_requeue,futex_wait,futex_waitv,futex_wake,futimesat,get_mempolicy,get_robust_list,getcpu,getcwd,getdents,getdents64,getegid,geteuid,getgid,getgroups,getitimer,getpeername,getpgid,getpgrp,getpid,getppid,getpriority,getrandom,getresgid,getresuid,getrlimit,getrusage,getsid,getsockname,getsockopt,gettid,gettimeofday,getuid,getxattr,getxattrat,inotify_add_watch,inotify_init,inotify_init1,inotify_rm_watch,ioctl,ioprio_get,ioprio_set,kill,landlock_add_rule,landlock_create_ruleset,landlock_restrict_self,lchown,lgetxattr,link,linkat,listen,listxattr,listxattrat,llistxattr,lremovexattr,lseek,lsetxattr,lstat,madvise,map_shadow_stack,mbind,membarrier,mincore,mkdir,mkdirat,mknod,mknodat,mlock,mlock2,mlockall,mmap,mprotect,mq_getsetattr,mq_notify,mq_open,mq_timedreceive,mq_timedsend,mq_unlink,mremap,mseal,msgctl,msgget,msgrcv,msgsnd,msync,munlock,munlockall,munmap,nanosleep,newfstatat,open,openat,pause,personality,pidfd_open,pidfd_send_signal,pipe,pipe2,pkey_alloc,pkey_free,pkey_mprotect,poll,ppoll,prctl,pread64,preadv,preadv2,prlimit64,pselect6,pwrite64,pwritev,pwritev2,read,readahead,readlink,readlinkat,readv,recvfrom,recvmmsg,recvmsg,removexattr,removexattrat,rename,renameat,renameat2,restart_syscall,rmdir,rseq,rt_sigaction,rt_sigpending,rt_sigprocmask,rt_sigqueueinfo,rt_sigreturn,rt_sigsuspend,rt_sigtimedwait,rt_tgsigqueueinfo,sched_get_priority_max,sched_get_priority_min,sched_getaffinity,sched_getattr,sched_getparam,sched_getscheduler,sched_rr_get_interval,sched_setaffinity,sched_setattr,sched_setparam,sched_setscheduler,sched_yield,seccomp,select,semctl,semget,semop,semtimedop,sendfile,sendmmsg,sendmsg,sendto,set_mempolicy,set_mempolicy_home_node,set_robust_list,set_tid_address,setfsgid,setfsuid,setgid,setgroups,setitimer,setpgid,setpriority,setregid,setresgid,setresuid,setreuid,setrlimit,setsid,setsockopt,setuid,setxattr,setxattrat,shmat,shmctl,shmdt,shmget,shutdown,sigaltstack,signalfd,signalfd4,socket,socketpair,splice,stat,statfs,statx,symlink,symlinkat,sync,sync_file_range,syncfs,sysinfo,tee,tgkill,time,timer_create,timer_delete,timer_getoverrun,timer_gettime,timer_settime,timerfd_create,timerfd_gettime,timerfd_settime,times,tkill,truncate,umask,uname,unlink,unlinkat,utime,utimensat,utimes,wait4,waitid,write,writev
rlimit-nofile 1024
